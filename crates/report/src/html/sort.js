"use strict";
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const rows = Array.from(body.rows);
  const key = (row, place) => row.cells[place].dataset.key ?? row.cells[place].textContent;
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b);
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falls = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      const sorted = rows.slice().sort((a, b) => {
        const [left, right] = [key(a, place), key(b, place)];
        if (left === "" || right === "") return (left === "") - (right === "");
        return falls ? compare(right, left) : compare(left, right);
      });
      body.append(...sorted);
    });
  });
  const label = document.querySelector("label.filter");
  const input = label.querySelector("input");
  label.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    rows.forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(wanted); });
  });
}
