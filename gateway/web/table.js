// Tables with sortable headers. On a telephone each row is a card.
import { el, keyed, text } from './dom.js';
import { param, set } from './address.js';
import { number } from './format.js';

const first = 20, step = 60; // rows

// table fills a <table> from columns {name, sort, cell, make, fill, wide}. cell returns [main, small] for an item, and
// may give the address of main as the third element; make creates other content once per row, and fill
// changes it. changed is called after a click on a header; without it the headers are plain. A table begins
// with the rows of a screen and grows before its reader scrolls: a browser lays out a row in a millisecond.
export function table(place, columns, changed) {
  const by = () => param('sort');
  const heads = columns.map((c) => {
    const th = el('th', { scope: 'col' });
    if (!c.sort || !changed) {
      th.append(c.name);
      return th;
    }
    const button = el('button', { type: 'button', class: 'sort' }, c.name);
    button.addEventListener('click', () => {
      set({ sort: by() === c.sort ? `-${c.sort}` : c.sort });
      mark();
      shown = first;
      changed();
    });
    th.append(button);
    return th;
  });
  const mark = () => heads.forEach((th, i) => {
    const { sort } = columns[i];
    if (sort && by() === sort) th.setAttribute('aria-sort', 'ascending');
    else if (sort && by() === `-${sort}`) th.setAttribute('aria-sort', 'descending');
    else th.removeAttribute('aria-sort');
  });
  mark();
  place.classList.add('cards');
  const body = el('tbody');
  place.append(el('thead', {}, el('tr', {}, ...heads)), body);

  const make = (item) => el('tr', {}, ...columns.map((c, i) => {
    const cell = el(i ? 'td' : 'th', i ? { 'data-label': c.name, class: c.wide ? 'wide' : '' } : { scope: 'row' });
    cell.append(...(c.make?.(item) ?? []));
    if (c.cell) cell.append(el('span'), el('small'));
    return cell;
  }));
  const update = (row, item, style) => {
    columns.forEach((c, i) => {
      const cell = row.children[i];
      c.fill?.(cell, item);
      if (!c.cell) return;
      const [main, small = '', href] = c.cell(item);
      const [span, note] = [cell.lastChild.previousSibling, cell.lastChild];
      if (!href) text(span, main);
      else if (span.firstChild?.getAttribute?.('href') === href) text(span.firstChild, main);
      else span.replaceChildren(el('a', { href }, main));
      text(note, small);
    });
    row.className = style;
  };
  let shown = first, redraw = () => {};
  const rest = el('p', { class: 'note', hidden: '' });
  place.after(rest);
  const observer = new IntersectionObserver((all) => {
    if (!all.at(-1).isIntersecting) return;
    shown += step;
    redraw();
  }, { rootMargin: '100%' });
  return (items, key, style = () => '') => {
    redraw = () => {
      place.hidden = !items.length;
      keyed(body, items.slice(0, shown), key, make, (row, item) => update(row, item, style(item)));
      rest.hidden = items.length <= shown;
      text(rest, `${number(shown)} of ${number(items.length)} rows; scroll for more.`);
      observer.unobserve(rest);
      observer.observe(rest); // reports also if it is still visible
    };
    redraw();
  };
}
