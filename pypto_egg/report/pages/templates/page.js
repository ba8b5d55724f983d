"use strict";
// Tables: a click on a column's title sorts by it, a second one the other way round.
const key = (cell) => {
  const text = cell.textContent.trim();
  const number = text === "" ? NaN : Number(text.replaceAll(",", "").replace(/ ?%$/, ""));
  return Number.isNaN(number) ? text : number;
};
const order = (a, b) => {
  if (a === "" || b === "") return (a === "") - (b === ""); // nothing goes last
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
  return typeof a === "number" ? -1 : 1;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    title.querySelector("button").addEventListener("click", () => {
      const up = title.getAttribute("aria-sort") !== "ascending";
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
      rows.sort(([a], [b]) => (up || a === "" || b === "" ? order(a, b) : -order(a, b)));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
// A filter above a table hides the rows that do not hold its words.
for (const input of document.querySelectorAll("input[data-filters]")) {
  const rows = document.getElementById(input.dataset.filters).tBodies[0].rows;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
// Marks: the <title> of one is shown at the pointer at once, on touch too.
const tip = document.getElementById("tip");
const show = (event) => {
  const mark = event.target.closest?.("[data-tip], :has(> title)");
  const own = mark?.querySelector(":scope > title");
  if (own && mark !== document.head) {
    mark.dataset.tip = own.textContent;
    mark.setAttribute("aria-label", own.textContent);
    own.remove();
  }
  tip.hidden = !mark?.dataset?.tip;
  if (tip.hidden) return;
  tip.textContent = mark.dataset.tip;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4))}px`;
  tip.style.top = `${event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 16}px`;
};
document.addEventListener("pointermove", show);
document.addEventListener("pointerdown", show);
// Timelines: the slider widens them inside of their frame.
for (const slider of document.querySelectorAll("input[data-zooms]")) {
  const lanes = document.getElementById(slider.dataset.zooms);
  slider.addEventListener("input", () => lanes.style.setProperty("--zoom", slider.value));
}
// Programs: pointing at a name marks the same value before and after, `y` and `y__tile`.
const base = (name) => name.textContent.replace(/__tile$/, "");
const names = new Map();
for (const name of document.querySelectorAll(".programs .n")) {
  if (!names.has(base(name))) names.set(base(name), []);
  names.get(base(name)).push(name);
}
const mark = (event, on) => {
  if (!event.target.matches?.(".programs .n")) return;
  for (const name of names.get(base(event.target)) ?? []) name.classList.toggle("same", on);
};
document.addEventListener("pointerover", (event) => mark(event, true));
document.addEventListener("pointerout", (event) => mark(event, false));
