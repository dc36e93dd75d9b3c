// DOM helpers. They never parse markup, so that text from the log stays text.

export const byId = (id) => document.getElementById(id);
const svgTags = new Set(['svg', 'rect', 'path', 'circle', 'text', 'g', 'title']);

// copyButton makes a button that copies what content returns.
export function copyButton(button, content) {
  const name = button.textContent;
  button.addEventListener('click', async () => {
    const copied = await navigator.clipboard?.writeText(content()).then(() => true, () => false);
    text(button, copied ? 'Copied' : 'Copy the text by hand');
    setTimeout(() => text(button, name), 2000);
  });
}

// el creates an element; children are elements or text.
export function el(tag, attributes = {}, ...children) {
  const e = svgTags.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// text sets the text of an element only if it differs, which preserves selections and does not
// trigger screen readers.
export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

// keyed updates the children of parent to one element per item, in order. It creates an element once
// per key and reuses it; update(child, item) sets its content.
export function keyed(parent, items, key, make, update) {
  const existing = new Map([...parent.children].map((c) => [c.dataset.key, c]));
  items.forEach((item, i) => {
    const k = String(key(item));
    const child = existing.get(k) ?? make(item);
    existing.delete(k);
    child.dataset.key = k;
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
    update(child, item);
  });
  for (const c of existing.values()) c.remove();
}

// loaded ends the loading state of a section: from now on its content is known.
export const loaded = (section) => byId(section).removeAttribute('data-loading');
