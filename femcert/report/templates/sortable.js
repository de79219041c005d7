for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], written = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const value = (row, i) => {
    const text = row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
    const number = parseFloat(text.replaceAll(",", ""));
    return /^[-+.\d]/.test(text) && !isNaN(number) ? number : text;
  };
  const compare = (a, b) => typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b)) : (typeof a === "number" ? -1 : 1);
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.ariaSort ?? "none"];
      for (const other of heads) other.removeAttribute("aria-sort");
      const rows = [...written];
      if (next !== "none") {
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        rows.sort((a, b) => sign * compare(value(a, i), value(b, i)));
      }
      body.append(...rows);
    });
  });
}
