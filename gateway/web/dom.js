// Elements, without markup in strings: text from the log is only ever text.

export const byId = (id) => document.getElementById(id);
const drawn = new Set(['svg', 'rect', 'path', 'circle', 'text', 'g', 'title']);

// el makes an element; children are elements or text.
export function el(tag, attributes = {}, ...children) {
  const e = drawn.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// text changes only what differs: a screen reader and a selection are left alone.
export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

// keyed makes the children of parent follow items: one made once per key, kept
// while it is there, in order. update(child, item) fills it.
export function keyed(parent, items, key, make, update) {
  const there = new Map([...parent.children].map((c) => [c.dataset.key, c]));
  items.forEach((item, i) => {
    const k = String(key(item));
    const child = there.get(k) ?? make(item);
    there.delete(k);
    child.dataset.key = k;
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
    update(child, item);
  });
  for (const c of there.values()) c.remove();
}
