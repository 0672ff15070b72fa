"use strict";
// Tooltips, sorting and the filter. The page is complete without any of them.
document.documentElement.classList.add("js");

function element(tag, css, text) {
  const made = document.createElement(tag);
  if (css) made.className = css;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Values under the pointer, or under the arrow keys when a chart has the focus.
const SVG = "http://www.w3.org/2000/svg";
for (const figure of document.querySelectorAll("figure.chart")) {
  const source = figure.querySelector('script[type="application/json"]');
  if (!source) continue;
  const data = JSON.parse(source.textContent);
  const plot = figure.querySelector(".plot");
  const svg = plot.querySelector("svg");
  const tip = element("div", "tip");
  tip.hidden = true;
  plot.append(tip);
  const hair = document.createElementNS(SVG, "line");
  hair.setAttribute("class", "hair");
  hair.setAttribute("y1", data.top);
  hair.setAttribute("y2", data.base);
  const dots = document.createElementNS(SVG, "g");
  dots.setAttribute("class", "dots");
  // Many lines have a legend with values: it shows all of them, the tooltip only the nearest.
  const values = new Map();
  for (const item of figure.querySelectorAll(".legend.column li")) {
    const value = item.querySelector("b");
    values.set(item.dataset.name, { item, value, last: value.textContent });
  }
  let shown = -1;

  const show = (index, height) => {
    if (index < 0 || index >= data.x.length) return;
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    let nearest = null;
    if (height !== undefined) {
      let distance = Infinity;
      for (const row of data.rows) {
        if (row.y[index] === null) continue;
        const here = Math.abs(row.y[index] - height);
        if (here < distance) { distance = here; nearest = row; }
      }
    }
    shown = index;
    tip.replaceChildren(element("p", "", data.x[index]));
    dots.replaceChildren();
    for (const row of data.rows) {
      const text = row.text[index];
      const entry = values.get(row.name);
      if (entry) {
        entry.value.textContent = text === null ? "–" : text;
        entry.item.classList.toggle("near", row === nearest);
      }
      if (text === null) continue;
      if (!entry || row === nearest) {
        const line = element("div");
        const swatch = element("i");
        swatch.style.setProperty("--c", `var(--${row.colour})`);
        line.append(swatch, element("span", "", row.name), element("b", "", text));
        tip.append(line);
      }
      if (row.y[index] === null) continue;
      const dot = document.createElementNS(SVG, "circle");
      dot.setAttribute("cx", data.at[index]);
      dot.setAttribute("cy", row.y[index]);
      dot.setAttribute("r", 4.5);
      dot.style.setProperty("--c", `var(--${row.colour})`);
      dots.append(dot);
    }
    hair.setAttribute("x1", data.at[index]);
    hair.setAttribute("x2", data.at[index]);
    if (!hair.parentNode) svg.append(hair, dots);
    tip.hidden = false;
    const x = data.at[index] * scale;
    const width = tip.offsetWidth;
    const right = x + 14 + width <= plot.clientWidth;
    const left = right ? x + 14 : x - 14 - width;
    tip.style.left = Math.max(0, Math.min(left, plot.clientWidth - width)) + "px";
  };
  const hide = () => {
    tip.hidden = true;
    shown = -1;
    hair.remove();
    dots.remove();
    for (const { item, value, last } of values.values()) {
      value.textContent = last;
      item.classList.remove("near");
    }
  };
  const follow = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    let index = 0;
    data.at.forEach((at, i) => {
      if (Math.abs(at - x) < Math.abs(data.at[index] - x)) index = i;
    });
    show(index, (event.clientY - box.top) * scale);
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(shown < 0 ? data.x.length - 1 : Math.max(0, Math.min(data.x.length - 1, shown + step)));
  });

  // A name in the legend brings its line forward.
  for (const item of figure.querySelectorAll(".legend li")) {
    const mark = (on) => {
      svg.classList.toggle("choosing", on);
      for (const series of svg.querySelectorAll(".series")) {
        series.classList.toggle("chosen", on && series.dataset.name === item.dataset.name);
      }
    };
    item.addEventListener("pointerenter", () => mark(true));
    item.addEventListener("pointerleave", () => mark(false));
  }
}

// Long lists begin short; the button goes once it has been used.
const FEW = 20;
for (const button of document.querySelectorAll("button.all")) {
  const rows = document.getElementById(button.dataset.rows);
  button.hidden = rows.children.length <= FEW;
  rows.classList.toggle("short", !button.hidden);
  button.addEventListener("click", () => {
    rows.classList.remove("short");
    button.hidden = true;
  });
}

// Tables: a click on a heading sorts, a second one turns the order around.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = element("button", "", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const text = head.dataset.kind === "text";
      const was = head.getAttribute("aria-sort");
      const order = was ? (was === "ascending" ? "descending" : "ascending")
        : (text ? "ascending" : "descending");
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const value = (row) => row.cells[column].dataset.v;
      const rows = [...body.rows];
      rows.sort((a, b) => sign * (text
        ? value(a).localeCompare(value(b), undefined, { numeric: true })
        : Number(value(a)) - Number(value(b))));
      body.append(...rows);
    });
  });
}

// Sentences: filter and order.
const list = document.querySelector("ol.sentences");
if (list) {
  const items = [...list.children];
  const words = items.map((item) => item.textContent.toLocaleLowerCase());
  const filter = document.getElementById("filter");
  const order = document.getElementById("order");
  const found = document.getElementById("found");
  const all = document.querySelector('[data-rows="sentence-rows"]');
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLocaleLowerCase();
    // A match must not hide behind the button.
    list.classList.toggle("short", wanted === "" && !all.hidden);
    all.classList.toggle("off", wanted !== "");
    let left = 0;
    items.forEach((item, i) => {
      item.hidden = wanted !== "" && !words[i].includes(wanted);
      if (!item.hidden) left += 1;
    });
    found.textContent = wanted ? `${left} of ${items.length}` : `${items.length} shown`;
  });
  const change = (item) => Number(item.dataset.change);
  const orders = {
    size: (a, b) => Math.abs(change(b)) - Math.abs(change(a)),
    better: (a, b) => change(b) - change(a),
    worse: (a, b) => change(a) - change(b),
    sentence: (a, b) => Number(a.dataset.sentence) - Number(b.dataset.sentence),
  };
  order.addEventListener("change", () => {
    list.append(...[...items].sort(orders[order.value]));
  });
}
