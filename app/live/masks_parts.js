// Pictures and tables of the Masks page: arrays in, drawing out.
const count = (n) => Array.from({ length: n }, (_, i) => String(i + 1));

// A mask as it is stored, or spread over heads and queries as broadcasting does; a click turns a cell of it.
class MaskPicture extends Picture {
  constructor(parent, title, letter, hooks) {
    super(parent, title, "", 24, hooks);
    this.letter = letter;
    this.box.classList.toggle("turns", Boolean(hooks.pick));
    this.shape = make("p", "shape", this.box);
    this.box.append(this.shape, this.note);
  }

  // shown: {mask: {shape, values}, spread: null or (B, H, T_q, T_k), tokens: B rows of labels or null, flips: Set, sentence}
  show(shown, value) {
    const { mask, spread, tokens, sentence } = shown, [B, , queries, keys] = mask.shape;
    this.shown = shown;
    const flat = !spread && queries === 1; // sentences as rows of one tile
    const weights = spread ? { shape: spread, values: broadcast(mask, spread) }
      : { shape: flat ? [1, 1, B, keys] : [1, B, queries, keys], values: mask.values };
    const [, , rows, columns] = weights.shape;
    this.mostCell = spread ? 9 : 24;
    const grid = {
      name: this.title.textContent, weights, rows: count(rows), columns: count(columns), shown: rows, tone: 0.34,
      axes: spread ? ["sentence", "head"] : ["", B > 1 ? "sentence" : ""], bare: flat,
      current: flat && tokens && B > 1 ? sentence : -1, over: (pen, tile) => this.over(pen, tile, flat && tokens),
    };
    if (!flat && !spread && B > 1) grid.picked = { layer: 0, head: sentence };
    const open = mask.values.reduce((a, b) => a + b, 0);
    this.draw(grid, value, `${grid.name} mask of shape (${mask.shape.join(", ")}): ${open} of ${mask.values.length} cells open.`);
  }

  // The cell of the mask as it is stored, from a cell of the picture.
  stored({ layer, head, row, column }) {
    const { mask, spread } = this.shown, [B, , queries] = mask.shape;
    const at = spread ? { b: layer, i: row } : queries === 1 ? { b: row, i: 0 } : { b: head, i: row };
    return { b: B === 1 ? 0 : at.b, i: queries === 1 ? 0 : at.i, j: column };
  }

  nameOf(cell) {
    const { b, i, j } = this.stored(cell);
    return this.letter === "d" ? `d${b + 1}.${i + 1}.${j + 1}` : `${this.letter}${b + 1}.${j + 1}`;
  }

  isOpen(cell) {
    const [, heads, rows, columns] = this.grid.weights.shape;
    return this.grid.weights.values[((cell.layer * heads + cell.head) * rows + cell.row) * columns + cell.column] === 1;
  }

  over(pen, { layer, head, x, y, cell, colours }, tokens) {
    const { weights, cursor } = this.grid, [, heads, rows, columns] = weights.shape;
    const start = (layer * heads + head) * rows * columns;
    hatch(pen, x, y, rows, columns, cell, (row, column) => !weights.values[start + row * columns + column], colours.line);
    if (tokens && cell >= 14) {
      tokens.forEach((row, r) => row.forEach((token, c) => {
        label(pen, fitted(pen, token === "<bos>" ? "▸" : token, cell - 3), x + (c + 0.5) * cell - 0.5, y + (r + 0.5) * cell, "center", colours, { size: 11, opacity: this.isOpen({ layer, head, row: r, column: c }) ? 1 : 0.55 });
      }));
    }
    pen.strokeStyle = colours.accent;
    const frame = (row, column, width) => {
      pen.lineWidth = width;
      pen.strokeRect(x + column * cell + 0.5, y + row * cell + 0.5, cell - 2, cell - 2);
    };
    if (this.shown.flips.size) {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) if (this.shown.flips.has(this.nameOf({ layer, head, row, column }))) frame(row, column, 2);
      }
    }
    if (cursor && cursor.layer === layer && cursor.head === head) frame(cursor.row, cursor.column, 1);
  }

  read(cell) {
    if (!cell) return this.hooks.read(null);
    const { b, i, j } = this.stored(cell), { mask, tokens } = this.shown, [B, , queries] = mask.shape;
    const word = (k) => (tokens ? ` (${tokens[b][k]})` : "");
    const where = [B > 1 ? `sentence ${b + 1}` : "", queries > 1 ? `query ${i + 1}${word(i)}` : "", `key ${j + 1}${word(j)}`];
    const all = [B > 1 ? "" : "sentence", "head", queries > 1 ? "" : "query"];
    this.hooks.read(`${where.filter(Boolean).join(", ")}: ${this.isOpen(cell) ? "may be attended" : "masked"}, for every ${all.filter(Boolean).join(" and ")}`);
  }
}

// Numpy's rule: an axis of 1 is read again and again.
function broadcast({ shape, values }, [B, H, R, C]) {
  const out = new Float32Array(B * H * R * C), [b1, h1, r1, c1] = shape;
  for (let b = 0, at = 0; b < B; b++)
    for (let h = 0; h < H; h++)
      for (let r = 0; r < R; r++)
        for (let c = 0; c < C; c++, at++) out[at] = values[(((b % b1) * h1 + (h % h1)) * r1 + (r % r1)) * c1 + (c % c1)];
  return out;
}

function fitted(pen, text, width) {
  let fits = text;
  while (fits.length > 1 && pen.measureText(fits).width > width) fits = fits.slice(0, -1);
  return fits;
}

// Rows of weights in which nothing may be attended say so.
function markEmptyRows(mask, pen, { x, y, cell, colours }) {
  const [rows, columns] = mask.shape;
  for (let row = 0; row < rows; row++) {
    if (mask.values.subarray(row * columns, (row + 1) * columns).some(Boolean)) continue;
    pen.fillStyle = `rgb(${colours.paper.join()})`;
    pen.globalAlpha = 0.8;
    pen.fillRect(x + 2, y + row * cell, columns * cell - 5, cell - 1);
    pen.globalAlpha = 1;
    label(pen, fitted(pen, columns * cell > 60 ? "no key: all 0" : "all 0", columns * cell - 6), x + (columns * cell) / 2, y + (row + 0.5) * cell, "center", colours, { size: Math.min(11, cell), opacity: 0.9 });
  }
}

const small = (x) => (x === 0 ? "exactly 0" : x < 0.0005 ? x.toExponential(1) : x.toFixed(3));

// One bar a position: how far its logits moved.
class Bars {
  constructor(parent, title) {
    this.box = make("div", "bars", parent);
    this.title = make("h3", "", this.box, title);
    this.told = make("p", "told", this.box);
    this.list = make("ol", "", this.box);
    this.rows = [];
  }

  show(values, labels, place, most) {
    while (this.rows.length > labels.length) this.rows.pop().row.remove();
    while (this.rows.length < labels.length) {
      const row = make("li", "", this.list);
      this.rows.push({ row, label: make("span", "label", row), fill: make("span", "fill", make("span", "track", row)), value: make("span", "value", row) });
    }
    this.rows.forEach(({ row, label, fill, value }, t) => {
      row.classList.toggle("changed", t === place);
      row.classList.toggle("zero", values[t] === 0);
      label.textContent = `${t + 1}  ${labels[t]}`;
      fill.style.width = `${(100 * values[t]) / most}%`;
      value.textContent = small(values[t]);
    });
    const before = values.subarray(0, place), moved = before.reduce((a, b) => Math.max(a, b), 0);
    this.told.textContent = place === 0 ? "Nothing stands before the first position." : moved === 0 ? `The ${place === 1 ? "position" : `${place} positions`} before it: exactly 0.` : `Before it logits move by up to ${small(moved)}: a leak.`;
    this.told.classList.toggle("leaks", moved > 0);
  }
}

// One empty row under each masked softmax: weights (n, T_k), numbers (n, 4).
const EMPTY_MEANS = ["0/0: everything after it is NaN", "averages what it was to ignore", "looks right, trains to NaN", "adds nothing, finite gradients"];

function layEmpty(table, names, weights, numbers, keys) {
  const [n, T_k] = weights.shape, nan = (x) => (Number.isNaN(x) ? "NaN" : x === 0 ? "0" : digitsOf(x));
  table.replaceChildren();
  const top = make("tr", "", table);
  for (const text of ["", `weights on ${T_k} keys`, "Σ", "|z|", "∂ scores", "∂ v", ""]) make("th", "", top, text);
  for (let i = 0; i < n; i++) {
    const line = make("tr", i === n - 1 ? "ours" : "", table);
    make("th", "", line, names[i]);
    const cells = make("div", "cells", make("td", "wide", line));
    cells.setAttribute("role", "img");
    const row = weights.values.subarray(i * T_k, (i + 1) * T_k);
    cells.setAttribute("aria-label", `${names[i]}: ${Array.from(row, nan).join(", ")}`);
    row.forEach((weight, k) => {
      const cell = make("span", Number.isNaN(weight) ? "nan" : "", cells, T_k <= 12 ? nan(weight) : Number.isNaN(weight) ? "!" : " ");
      cell.title = `${keys[k]}: ${nan(weight)}`;
      cell.style.setProperty("--share", `${Number.isNaN(weight) ? 0 : 100 * weight}%`);
    });
    for (let k = 0; k < 4; k++) {
      const x = numbers.values[i * 4 + k];
      make("td", Number.isNaN(x) ? "nan" : "", line, nan(x));
    }
    make("td", "means", line, EMPTY_MEANS[i]);
  }
}

const digitsOf = (x) => (x < 0.0005 ? x.toExponential(1) : x.toFixed(3));

// The two trained models side by side.
function layModels(table, pair) {
  const columns = [pair.causal, pair.open], lossOf = (x) => `${digitsOf(x)} nats`;
  table.replaceChildren();
  const line = (name, cells) => {
    const row = make("tr", "", table);
    make("th", "", row, name);
    cells.forEach((fill) => {
      const cell = make("td", "", row);
      if (typeof fill === "string") cell.textContent = fill;
      else fill(cell);
    });
  };
  const tokens = (model, key) => (cell) => {
    const right = model.right;
    const chips = make("div", "chips", cell);
    model[key].forEach((token, t) => make("span", token === right[t] ? "chip" : "chip wrong", chips, token));
    const is = model[key].length === right.length && model[key].every((token, t) => token === right[t]);
    make("span", is ? "verdict" : "verdict no", chips, is ? "✓" : "✗");
  };
  line("", ["Trained with the causal mask", "Trained without it"]);
  line("Loss while it reads the right answer, masked as trained", [lossOf(pair.causal.loss_causal), lossOf(pair.open.loss_open)]);
  line("The same with the causal mask, as when it decodes", [lossOf(pair.causal.loss_causal), lossOf(pair.open.loss_causal)]);
  line("Your sequence, right answer being read", columns.map((model) => tokens(model, "forced")));
  line("Your sequence, decoded greedily", columns.map((model) => tokens(model, "greedy")));
  line(`Exact match, ${pair.fresh} fresh sequences now`, columns.map(({ exact }) => `${exact} of ${pair.fresh}`));
  line("Exact match once trained", columns.map(({ trained }) => `${trained.exact_match.toLocaleString("en")} of ${trained.exact_match_of.toLocaleString("en")}`));
  return table;
}
