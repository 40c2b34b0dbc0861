"use strict";

// A number, or the text itself; a dash, which stands for no number, is null and always sorts last.
function value(row, column) {
  const text = row.cells[column].textContent.trim();
  if (text === "–") return null;
  const number = Number(text.replaceAll(",", "").replace("−", "-"));
  return text === "" || Number.isNaN(number) ? text : number;
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
}

function sort(header) {
  const table = header.closest("table");
  const body = table.tBodies[0];
  const column = Number(header.dataset.column);
  const rows = [...body.rows];
  const numeric = rows.some((row) => typeof value(row, column) === "number");
  const before = header.getAttribute("aria-sort");
  const descending = before === "none" ? numeric : before === "ascending";
  rows.sort((a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    if (x === null || y === null) return (x === null) - (y === null);
    return descending ? compare(y, x) : compare(x, y);
  });
  body.append(...rows);
  table.querySelectorAll("th[aria-sort]").forEach((other) => other.setAttribute("aria-sort", "none"));
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sort(button.closest("th")));
}

const search = document.querySelector("#search");
search?.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  let shown = 0;
  for (const row of document.querySelectorAll("#target-table tbody tr")) {
    row.hidden = !row.dataset.search.includes(wanted);
    shown += !row.hidden;
  }
  for (const examples of document.querySelectorAll("details[data-search]")) {
    examples.hidden = !examples.dataset.search.includes(wanted);
  }
  document.querySelector("#shown").textContent = `${shown} shown`;
});
