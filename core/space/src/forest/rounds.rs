//! How far the rounds go in which derivations are made.

/// What the rounds go by.
pub(super) struct Rounds {
    /// Leads of the best derivation over those through some edges, ascending.
    sample: Vec<f64>,
    /// How many edges each of them stands for.
    stride: usize,
    /// Everything was made that the best derivation leads by so much.
    done: f64,
    /// The reach of the next round, if the last one had too much to do.
    shorter: Option<f64>,
    /// The limit of the next round, where too much has the same score: see [`Round::most`].
    most: usize,
    /// How many will be asked for, as far as that is known.
    wanted: usize,
    slack: f64,
}

/// One round.
pub(super) struct Round {
    /// What the best derivation leads by no more than this is made.
    pub reach: f64,
    /// There is nothing that it leads by less than this.
    lead: f64,
    /// How many rows of an edge may be begun, and how much may be made of each.
    pub most: usize,
    /// How much may still be found.
    left: isize,
}

impl Round {
    /// Counts what was found; false if it is too much.
    #[inline]
    pub fn affords(&mut self, found: usize) -> bool {
        self.left -= found as isize;
        self.left >= 0
    }

    pub fn is_crowded(&self) -> bool {
        self.left < 0
    }

    /// Nodes may not make all that is within reach; only those do that others wait for.
    pub fn is_limited(&self) -> bool {
        self.most != usize::MAX
    }
}

const SAMPLE: usize = 512;
/// Lists do not grow by more than this at once.
const MOST: usize = 1 << 17;
/// What is wanted if nobody said.
const FEW: usize = 8;

impl Rounds {
    pub fn new(leads: &[f64], slack: f64) -> Rounds {
        let stride = leads.len() / SAMPLE + 1;
        let leads = leads.iter().copied().step_by(stride);
        let mut sample: Vec<f64> = leads.filter(|lead| lead.is_finite()).collect();
        sample.sort_unstable_by(f64::total_cmp);
        Rounds { sample, stride, done: 0.0, shorter: None, most: usize::MAX, wanted: 0, slack }
    }

    /// Tells how many will be asked for.
    pub fn want(&mut self, wanted: usize) {
        self.wanted = wanted.min(MOST);
    }

    /// Begins a round, if there is more: the lead over what was not made is known, and how many
    /// derivations of the goal were.
    pub fn begin(&self, lead: f64, listed: usize) -> Option<Round> {
        if lead == f64::INFINITY {
            return None;
        }
        let wanted = if self.wanted > listed { self.wanted } else { 2 * listed.max(FEW) };
        let reach = self.shorter.unwrap_or_else(|| self.further(listed, wanted));
        let left = 8 * wanted + 2 * self.stride * self.sample.len() + 1024;
        let left = if self.most == usize::MAX { left as isize } else { isize::MAX };
        Some(Round { reach: reach.max(lead) + self.slack, lead, most: self.most, left })
    }

    /// How far to go for so many: a guess, on which the result does not depend. What it costs to
    /// guess too low is another round.
    fn further(&self, listed: usize, wanted: usize) -> f64 {
        if self.done == 0.0 {
            // Every edge is in some derivation, and derivations are more than that.
            let edges = self.stride * self.sample.len();
            let rank = (((wanted * edges) as f64).sqrt() as usize / 2).min(wanted * 5 / 4);
            let rank = (rank / self.stride).min(self.sample.len() / 2);
            return self.sample.get(rank).copied().unwrap_or_default();
        }
        // The logarithm of the length of lists grows with a power of the reach, with a lower one the
        // longer they are: fitted to lists of both decoders.
        let logs = |count: usize| (count.max(2) as f64).ln();
        let (now, then) = (logs(listed), logs(wanted + wanted / 16));
        self.done * (then / now).powf(0.6 + 0.17 * now).clamp(1.02, 4.0)
    }

    /// Ends a round: the lead over what the goal has not made is known, and whether its list grew.
    pub fn end(&mut self, round: &Round, lead: f64, grown: bool) {
        if round.is_crowded() {
            if round.reach <= round.lead + 2.0 * self.slack {
                // There was no shorter way to go: too much is equal.
                self.most = 1;
            }
            self.shorter = Some(self.done + (round.reach - self.done) / 4.0);
        } else if round.is_limited() && lead <= round.reach {
            self.most = if grown { (self.most / 2).max(1) } else { 2 * self.most };
        } else {
            self.done = round.reach;
            self.shorter = None;
            self.most = usize::MAX;
        }
    }
}
