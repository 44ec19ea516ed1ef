// Names for what the theme leaves without: screen readers say them.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("li.has-children > details > summary")) {
    const link = toggle.closest("li").querySelector("a");
    toggle.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
  // The name of a button contains what is written on it.
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.removeAttribute("aria-label");
  }
  const sidebar = document.querySelector(".bd-sidebar-primary");
  sidebar?.setAttribute("role", "region");
  sidebar?.setAttribute("aria-label", "Title, search and pages");
  // Signatures with a line for each parameter are no lists of terms.
  for (const list of document.querySelectorAll("dt.sig dl")) {
    const lines = document.createElement("div");
    lines.className = "signature";
    for (const part of list.children) {
      const line = document.createElement("div");
      line.append(...part.childNodes);
      lines.append(line);
    }
    list.replaceWith(lines);
  }
  // The corners of a table are no headings.
  for (const corner of document.querySelectorAll("th:empty, th:has(> p:empty:only-child)")) {
    const cell = document.createElement("td");
    cell.colSpan = corner.colSpan;
    corner.replaceWith(cell);
  }
  // What scrolls can be reached with the keyboard.
  for (const box of document.querySelectorAll("table.table, .cell_output, .cell_output .output, pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});
