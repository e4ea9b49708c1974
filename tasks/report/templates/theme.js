// Before anything is painted: what the reader chose the last time.
document.documentElement.classList.add("js");
for (const [name, attribute] of [["lang", "lang"], ["theme", "data-theme"]]) {
  try {
    const chosen = localStorage.getItem("yarus-" + name);
    if (chosen) document.documentElement.setAttribute(attribute, chosen);
  } catch { /* the browser keeps nothing for files: the page's own choice stands */ }
}
