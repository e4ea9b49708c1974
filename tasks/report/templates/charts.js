// Charts by Plotly, whose script is unpacked when the first chart comes into view.
let plotly = null;
function withPlotly() {
  plotly ??= unpack("plotly", "text").then((text) => {
    const script = document.createElement("script");
    script.nonce = document.querySelector("script[nonce]").nonce;
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return plotly;
}

const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);
function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** A figure with this theme's colours and this language's words in it. */
function resolved(value) {
  if (typeof value === "string") {
    if (value.startsWith("@c:")) return colour(value.slice(3));
    if (value.startsWith("@w:")) return word(value.slice(3));
    return value === "inherit" ? getComputedStyle(document.body).fontFamily : value;
  }
  if (Array.isArray(value)) return value.map(resolved);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolved(v)]));
  return value;
}

// Plotly fits a chart to a window that changes, but not one of a page that is closed then: it is fitted when it is shown.
const shown = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.clientWidth && target._fullLayout && Math.abs(target.clientWidth - target._fullLayout.width) > 1) window.Plotly.Plots.resize(target);
  }
});

const drawn = new Set();
function draw(element, library) {
  const figure = resolved(data.figures[element.dataset.figure]);
  if (!drawn.has(element)) shown.observe(element);
  drawn.add(element);
  return library.react(element, figure.data, figure.layout, { displayModeBar: false, responsive: true });
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    withPlotly().then((library) => draw(entry.target, library));
  }
}, { rootMargin: "400px" });
for (const element of document.querySelectorAll(".chart")) seen.observe(element);

async function redraw() {
  if (plotly) {
    const library = await plotly;
    for (const element of drawn) draw(element, library);
  }
}
document.addEventListener("chosen", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// On paper every section is open and every chart is drawn, at the paper's width; hints and long documents stay closed.
let closed = [];
function openAll() {
  closed = [...document.querySelectorAll("details.others-too:not([open]), .bars details:not([open])")];
  for (const element of closed) element.open = true;
  if (window.Plotly) for (const element of document.querySelectorAll(".chart")) draw(element, window.Plotly);
}
addEventListener("beforeprint", openAll);
addEventListener("afterprint", () => { for (const element of closed) element.open = false; redraw(); });
async function printAll() { await withPlotly(); print(); }
document.querySelector("[data-print]")?.addEventListener("click", printAll);
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "p" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) { event.preventDefault(); printAll(); }
});
