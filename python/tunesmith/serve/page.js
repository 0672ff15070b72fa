"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const KEY = "tunesmith.token";
  const HUES = 6;
  let service = null;
  let oldest = null;
  // Where the focus returns to once a token is given.
  let waiting = null;

  // Text is never read as HTML: every element gets its text as text.
  function made(tag, options = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function say(text, problem = false) {
    $("status").textContent = problem ? "" : text;
    $("problem").textContent = problem ? text : "";
  }

  async function ask(path, method = "GET", body = null) {
    const headers = {};
    const token = $("token").value.trim();
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== null) headers["Content-Type"] = "application/json";
    const options = { method, headers, cache: "no-store" };
    if (body !== null) options.body = JSON.stringify(body);
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Error("The service does not answer. Is it running?");
    }
    const found = response.status === 204 ? null : await response.json();
    if (!response.ok) {
      throw Object.assign(new Error(found.error || `Status ${response.status}`), { status: response.status });
    }
    return found;
  }

  // The parts of a text: phrases, and what stands between them.
  function parts(text, words, places, phrases, side) {
    const owner = new Map();
    phrases.forEach((phrase, at) => phrase[side].forEach((word) => owner.set(word, at)));
    let shown = text;
    let spans = places;
    if (!spans) {
      shown = words.join(" ");
      let end = -1;
      spans = words.map((word) => [end + 1, (end = end + 1 + word.length)]);
    }
    const characters = [...shown];
    const found = [];
    let end = 0;
    const cut = (from, to) => characters.slice(from, to).join("");
    spans.forEach(([start, stop], word) => {
      const phrase = owner.has(word) ? owner.get(word) : null;
      const last = found[found.length - 1];
      if (last && last.phrase !== null && last.phrase === phrase) {
        last.text += cut(end, stop);
      } else {
        if (start > end) found.push({ text: cut(end, start), phrase: null });
        found.push({ text: cut(start, stop), phrase });
      }
      end = stop;
    });
    if (end < characters.length) found.push({ text: cut(end), phrase: null });
    return found;
  }

  function near(item, phrase, on) {
    for (const each of item.querySelectorAll(`[data-phrase="${phrase}"]`)) {
      each.classList.toggle("near", on);
    }
  }

  function watched(element, item, phrase) {
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) {
      element.addEventListener(event, () => near(item, phrase, on));
    }
    return element;
  }

  function sentence(found, number) {
    const item = made("li");
    const { code: from } = service.source;
    const { code: to } = service.target;
    const source = made("p", { class: "from", lang: from, dir: "auto" });
    const target = made("p", { class: "to", lang: to, dir: "auto" });
    const choices = made("div", { class: "choices", hidden: true, id: `choices-${number}` });
    const id = `correction-${number}`;
    const area = made("textarea", { id, rows: 2, lang: to, dir: "auto" });
    let edited = false;

    const hue = (at) => `phrase hue${at % HUES}${found.phrases[at].origin === "unknown" ? " unknown" : ""}`;
    for (const part of parts(found.source, found.words, found.source_places, found.phrases, "source")) {
      if (part.phrase === null) source.append(part.text);
      else source.append(watched(
        made("span", { class: hue(part.phrase), "data-phrase": part.phrase }, part.text), item, part.phrase));
    }
    const segments = parts(found.text, found.target_words, found.target_places, found.phrases, "target");
    const whole = () => segments.map((each) => each.text).join("");

    // As it stands in the sentence: with a capital at the beginning, if there is one now.
    function placed(segment, text) {
      const before = segment.text;
      const capital = before[0] !== before[0].toLowerCase() && segment === segments.find((each) => each.text.trim());
      return capital ? text[0].toUpperCase() + text.slice(1) : text;
    }

    function choose(segment, button, text) {
      const before = segment.text;
      segment.text = placed(segment, text);
      area.value = edited ? area.value.replace(before, () => segment.text) : whole();
      button.textContent = segment.text;
      close(button);
      say(`“${before}” is now “${segment.text}”. Send it below as a correction.`);
      button.focus();
    }

    function close(button) {
      choices.hidden = true;
      choices.replaceChildren();
      button.setAttribute("aria-expanded", "false");
    }

    function open(segment, button, phrase) {
      for (const each of target.querySelectorAll("[aria-expanded=true]")) each.setAttribute("aria-expanded", "false");
      const texts = [phrase.target_text, ...phrase.alternatives];
      choices.replaceChildren(made("p", {}, `Instead of “${segment.text}”, from “${phrase.source_text}”:`),
        ...texts.filter((text) => text && placed(segment, text) !== segment.text)
          .map((text) => made("button", { type: "button", onclick: () => choose(segment, button, text) }, text)));
      choices.hidden = false;
      button.setAttribute("aria-expanded", "true");
      choices.querySelector("button")?.focus();
    }

    for (const segment of segments) {
      if (segment.phrase === null) { target.append(segment.text); continue; }
      const phrase = found.phrases[segment.phrase];
      const others = phrase.alternatives.length > 0;
      const button = made("button", {
        type: "button",
        class: hue(segment.phrase) + (others ? " has" : ""),
        "data-phrase": segment.phrase,
        "aria-description": `from: ${phrase.source_text}`,
        "aria-expanded": others ? "false" : null,
        "aria-controls": others ? choices.id : null,
        onclick: () => {
          if (!others) return;
          if (button.getAttribute("aria-expanded") === "true") close(button);
          else open(segment, button, phrase);
        },
      }, segment.text);
      target.append(watched(button, item, segment.phrase));
    }
    choices.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      const button = target.querySelector("[aria-expanded=true]");
      if (button) { close(button); button.focus(); }
    });

    if (!found.words.length) {
      source.textContent = found.source;
      target.textContent = found.text;
    }
    item.append(made("div", { class: "pairs" }, source, target));
    if (found.memory !== null) {
      item.append(made("p", { class: "badge" }, `from correction ${found.memory}, verbatim`));
    }
    item.append(choices);
    if (found.neighbours.length) item.append(neighbours(found));
    if (service.feedback !== "off") item.append(correction(found, area));
    area.value = found.text;
    area.addEventListener("input", () => { edited = true; });
    return item;
  }

  function neighbours(found) {
    const moved = Object.entries(found.moved).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12);
    const rows = moved.map(([name, change]) => made("tr", {},
      made("td", { class: "name" }, name), made("td", { class: "n" }, (change > 0 ? "+" : "") + change.toPrecision(3))));
    const list = found.neighbours.slice(0, 10).map((each) => made("li", {},
      made("span", { lang: service.source.code, dir: "auto" }, each.source),
      ...each.references.map((text) => made("p", { lang: service.target.code, dir: "auto" }, text)),
      made("p", {}, `similarity ${each.similarity.toFixed(2)}${each.feedback ? `, correction ${each.feedback}` : ""}`)));
    return made("details", {},
      made("summary", {}, `${found.neighbours.length} similar examples moved ${moved.length ? "the weights" : "no weight"}`),
      made("ol", { class: "near-list" }, ...list),
      rows.length ? made("div", { class: "scroll" }, made("table", {},
        made("thead", {}, made("tr", {}, made("th", { scope: "col" }, "feature"),
          made("th", { class: "n", scope: "col" }, "change of its weight"))),
        made("tbody", {}, ...rows))) : "");
  }

  function correction(found, area) {
    const form = made("form", { class: "correct" },
      made("label", { for: area.id }, "Correct it"), area,
      made("div", { class: "row" }, made("button", { type: "submit" }, "Send the correction")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const button = form.querySelector("button");
      button.disabled = true;
      try {
        const kept = await ask("v1/feedback", "POST",
          { source: found.source, translation: area.value, suggestion: found.text });
        say(kept.status === "accepted" ? `Correction ${kept.id} is kept and used from now on.`
          : `Correction ${kept.id} is kept and waits for review: ${kept.reasons.join("; ")}.`);
        await list();
      } catch (error) {
        if (error.status === 401 && !$("token").value) {
          say("A correction needs a token: give one here. “tunesmith token new” makes it.", true);
          waiting = button;
          button.disabled = false;
          $("token").focus();
        } else {
          say(error.message, true);
        }
      } finally {
        button.disabled = false;
      }
    });
    return form;
  }

  async function translate(event) {
    event.preventDefault();
    const button = $("ask").querySelector("button");
    if (button.disabled) return;
    button.disabled = true;
    say("Translating …");
    const begun = performance.now();
    try {
      const body = { text: $("source").value, nbest: 1 };
      if (service.local) body.local = $("local").checked;
      const found = await ask("v1/translate", "POST", body);
      const sentences = found.translations[0].sentences;
      $("sentences").replaceChildren(...sentences.map(sentence));
      $("answer").hidden = false;
      const spent = (name) => sentences.reduce((sum, each) => sum + (each.seconds[name] || 0), 0) * 1000;
      const shown = ["retrieval", "training", "decoding"].filter((name) => spent(name) > 0)
        .map((name) => `${name} ${spent(name).toFixed(1)} ms`);
      $("timing").textContent = [...shown, `waiting ${(found.seconds.waiting * 1000).toFixed(1)} ms`,
        `all together ${(performance.now() - begun).toFixed(0)} ms`].join(" · ");
      say(`${sentences.length} ${sentences.length === 1 ? "sentence" : "sentences"} translated.`);
    } catch (error) {
      say(error.message, true);
    } finally {
      button.disabled = false;
    }
  }

  function row(each) {
    const button = made("button", { type: "button", "aria-label": `Take back correction ${each.id}` }, "Take back");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await ask(`v1/feedback/${each.id}`, "DELETE");
        say(`Correction ${each.id} is taken back.`);
        await list();
        $("own-title").focus();
      } catch (error) {
        say(error.message, true);
        button.disabled = false;
      }
    });
    return made("li", {},
      made("div", {},
        made("p", { class: "from", lang: service.source.code, dir: "auto" }, each.source),
        made("p", { lang: service.target.code, dir: "auto" }, each.translation)),
      made("div", {}, button),
      made("p", { class: "why" }, made("span", { class: `badge ${each.status}` }, each.status),
        each.reasons.length ? ` ${each.reasons.join("; ")}` : ""));
  }

  async function list(more = false) {
    const permitted = service.feedback === "open" || (service.feedback === "token" && $("token").value.trim());
    $("own").hidden = !permitted;
    if (!permitted) return;
    const found = await ask(`v1/feedback?limit=20${more && oldest ? `&before=${oldest}` : ""}`);
    const rows = found.feedback.map(row);
    if (more) $("corrections").append(...rows);
    else $("corrections").replaceChildren(...rows);
    oldest = found.next;
    $("older").hidden = oldest === null;
    $("none").hidden = $("corrections").childElementCount > 0;
  }

  async function start() {
    $("token").value = sessionStorage.getItem(KEY) || "";
    service = await ask("v1/service");
    $("title").textContent = `${service.source.name} to ${service.target.name}`;
    document.title = `${service.source.name} to ${service.target.name} · Tunesmith`;
    $("source").lang = service.source.code;
    $("source-label").textContent = `Text in ${service.source.name}`;
    $("local-choice").hidden = !service.local;
    $("access").hidden = !(service.private || service.feedback === "token");
    if (service.private) $("token-label").textContent = "A token permits translations and corrections. It stays in this window.";
    await list().catch((error) => say(error.message, true));
  }

  $("ask").addEventListener("submit", translate);
  $("source").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
  });
  $("token-form").addEventListener("submit", (event) => { event.preventDefault(); $("token").blur(); });
  $("token").addEventListener("change", () => {
    sessionStorage.setItem(KEY, $("token").value.trim());
    list().then(() => {
      say(waiting ? "The token is good. Send the correction now." : "");
      waiting?.focus();
      waiting = null;
    }, (error) => {
      say(error.message, true);
      $("token").focus();
    });
  });
  $("older").addEventListener("click", () => list(true).catch((error) => say(error.message, true)));
  start().catch((error) => say(error.message, true));
})();
