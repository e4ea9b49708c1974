// What every page needs: elements made of text only, the language, the theme, printing.
"use strict";
const root = document.documentElement;
const dataElement = document.getElementById("data");
const data = dataElement ? JSON.parse(dataElement.textContent) : { words: {} };

/** An element; text is always set as text, so that nothing in it can become markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function word(key, values = {}) {
  const text = data.words[root.lang]?.[key] ?? key.replace(/^\w+ /, "");
  const chosen = text.replace(/\{(\w+):([^{}]+)\}/g, (whole, name, forms) => plural(values[name], forms.split("|")));
  return chosen.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** The word that goes with a whole number: of two forms as in English, of three as in Russian. */
function plural(n, forms) {
  if (forms.length === 2) return forms[n === 1 ? 0 : 1];
  if (n % 100 >= 11 && n % 100 <= 14) return forms[2];
  return forms[n % 10 === 1 ? 0 : n % 10 >= 2 && n % 10 <= 4 ? 1 : 2];
}

function number(value) {
  if (value == null) return "—";
  const text = Number.isInteger(value) ? String(value) : Math.abs(value) >= 100 ? value.toFixed(1) : value.toFixed(3);
  return text.replace("-", "−");
}

const CHOICES = { lang: "lang", theme: "data-theme" };
function choose(name, value) {
  root.setAttribute(CHOICES[name], value);
  try { localStorage.setItem("yarus-" + name, value); } catch { /* kept for this visit only */ }
  showChoices();
  document.dispatchEvent(new CustomEvent("chosen", { detail: name }));
}

function showChoices() {
  for (const group of document.querySelectorAll("[data-choice]")) {
    const now = root.getAttribute(CHOICES[group.dataset.choice]);
    for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === now));
  }
  for (const named of document.querySelectorAll("[data-ru]")) {
    named.setAttribute("aria-label", named.dataset[root.lang]);
    if (named.tagName === "BUTTON") named.title = named.dataset[root.lang];
  }
}

for (const group of document.querySelectorAll("[data-choice]")) {
  group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) choose(group.dataset.choice, button.dataset.value);
  });
}
showChoices();

/** What is known by that key; made when it is first asked for. */
function remembered(known, key, made) {
  if (!known.has(key)) known.set(key, made(key));
  return known.get(key);
}

/** What is packed under that name: JSON, or text. */
const opened = new Map();
function unpack(name, kind = "json") { return remembered(opened, name, () => unpacked(name, kind)); }
const whole = new Promise((done) => {
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", done); else done();
});
async function unpacked(name, kind) {
  await whole; // what is packed stands at the end of the page
  const element = document.querySelector(`script[data-pack="${CSS.escape(name)}"]`);
  const binary = atob(element.textContent.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  element.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream)[kind]();
}
