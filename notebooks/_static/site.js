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
  for (const part of document.querySelectorAll("dt.sig dl, dt.sig dl > dd")) {
    part.setAttribute("role", "presentation");
  }
  // What scrolls can be reached with the keyboard.
  for (const box of document.querySelectorAll("table.table, .cell_output, .cell_output .output, pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});
