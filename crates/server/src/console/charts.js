// Small charts. Each has a text alternative with its figures.

import { el, svg } from './dom.js';
import { count, counted, short } from './format.js';

/**
 * Calls a minute, as bars.
 * @param {number[]} values
 * @param {{width?: number, height?: number}} [size]
 */
export function sparkline(values, size = {}) {
  const { width = 120, height = 28 } = size;
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length);
  const sum = values.reduce((a, b) => a + b, 0);
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': `${counted(sum, 'call')} in the last ${counted(values.length, 'minute')}, at most ${count(Math.max(0, ...values))} in one` },
    values.map((value, index) => {
      const tall = value === 0 ? 1 : Math.max(2, (value / most) * (height - 2));
      return svg('rect', { class: value === 0 ? 'zero' : 'column', x: (index * step + 0.5).toFixed(2), y: (height - tall).toFixed(2), width: Math.max(1, step - 1).toFixed(2), height: tall.toFixed(2), rx: 1 });
    }));
}

const BOUNDS = ['1 µs', '2 µs', '4 µs', '8 µs', '16 µs', '32 µs', '64 µs', '128 µs', '256 µs', '512 µs', '1 ms', '2 ms', '4 ms', '8 ms', '16 ms', 'more'];

/**
 * A histogram of call durations.
 * @param {number[]} counts
 * @param {{width?: number, height?: number, axis?: boolean}} [size]
 */
export function histogram(counts, size = {}) {
  const { width = 120, height = 28, axis = false } = size;
  const most = Math.max(1, ...counts);
  const bottom = axis ? height - 22 : height;
  const step = width / Math.max(1, counts.length);
  const told = counts.map((n, i) => (n ? `${i === counts.length - 1 ? 'longer' : `up to ${BOUNDS[i] ?? ''}`}: ${count(n)}` : '')).filter(Boolean).join(', ');
  return svg('svg', { class: axis ? 'histogram axis' : 'histogram', viewBox: `0 0 ${width} ${height}`, ...(axis ? { preserveAspectRatio: 'xMidYMid meet' } : { width, height }), role: 'img', 'aria-label': `Time of calls. ${told || 'No calls yet'}` },
    counts.map((value, index) => {
      const tall = value === 0 ? 1 : Math.max(2, (value / most) * (bottom - (axis ? 18 : 2)));
      const x = index * step;
      return svg('g', null,
        svg('rect', { class: value === 0 ? 'zero' : 'column', x: (x + step * 0.08).toFixed(2), y: (bottom - tall).toFixed(2), width: (step * 0.84).toFixed(2), height: tall.toFixed(2), rx: axis ? 2 : 1 }),
        axis && value > 0 && svg('text', { x: (x + step / 2).toFixed(2), y: (bottom - tall - 5).toFixed(2), 'text-anchor': 'middle', class: 'value' }, value >= 10_000 ? `${Math.round(value / 1000)}k` : count(value)),
        axis && index % 2 === 0 && svg('text', { x: (x + step / 2).toFixed(2), y: height - 6, 'text-anchor': 'middle' }, BOUNDS[index] ?? ''));
    }));
}

/**
 * Counts by time, as bars; a part of each can stand out. Each bar has its time and figures as a title.
 * @param {{label: string, value: number, part?: number, title: string}[]} bars
 * @param {string} name
 */
export function columns(bars, name) {
  const [width, height, bottom] = [560, 132, 110];
  const most = Math.max(1, ...bars.map((bar) => bar.value));
  const step = width / Math.max(1, bars.length);
  const every = Math.ceil(bars.length / 6);
  const tall = (/** @type {number} */ value) => (value === 0 ? 1 : Math.max(2, (value / most) * (bottom - 22)));
  const rect = (/** @type {number} */ index, /** @type {number} */ value, /** @type {string} */ tone) => svg('rect', { class: value === 0 ? 'zero' : tone, x: (index * step + step * 0.12).toFixed(2), y: (bottom - tall(value)).toFixed(2), width: (step * 0.76).toFixed(2), height: tall(value).toFixed(2), rx: 1.5 });
  return svg('svg', { class: 'columns', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${name}: ${bars.filter((bar) => bar.value > 0).map((bar) => bar.title).join('; ') || 'none'}` },
    svg('text', { x: 0, y: 13 }, short(most)),
    bars.map((bar, index) => svg('g', null, svg('title', null, bar.title), rect(index, bar.value, 'column'), bar.part ? rect(index, bar.part, 'part') : null,
      index % every === 0 && svg('text', { x: (index * step + step * 0.12).toFixed(2), y: height - 5 }, bar.label))));
}

/**
 * Shares, as horizontal bars with links.
 * @param {{name: Node, href: string, value: number}[]} rows
 */
export function shares(rows) {
  const most = Math.max(1, ...rows.map((row) => row.value));
  return el('ul', { class: 'shares' }, rows.map((row) => el('li', null, el('a', { href: row.href }, row.name),
    svg('svg', { viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, svg('rect', { class: 'part', x: 0, y: 0, width: Math.max(1, (row.value / most) * 100).toFixed(1), height: 8, rx: 1 })),
    el('span', { class: 'num' }, count(row.value)))));
}

/**
 * A ring for the remaining time.
 * @param {number} size
 */
export function ring(size = 44) {
  const radius = size / 2 - 3;
  const around = 2 * Math.PI * radius;
  const arc = svg('circle', { class: 'arc', cx: size / 2, cy: size / 2, r: radius, 'stroke-dasharray': around, 'stroke-dashoffset': 0, transform: `rotate(-90 ${size / 2} ${size / 2})` });
  const root = svg('svg', { class: 'ring', viewBox: `0 0 ${size} ${size}`, width: size, height: size, 'aria-hidden': 'true' },
    svg('circle', { class: 'track', cx: size / 2, cy: size / 2, r: radius }), arc);
  return {
    root,
    /** @param {number} part from 1 to 0 */
    show(part) {
      arc.setAttribute('stroke-dashoffset', String(around * (1 - Math.min(1, Math.max(0, part)))));
    },
  };
}
