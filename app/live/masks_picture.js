// Masks and weights of the Masks page: arrays in, drawing out.
// Text that stays is not set again: the pictures would have to be laid out anew.
const say = (element, text) => element.textContent === text || (element.textContent = text);
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
    hatch(pen, x, y, { from: 0, to: rows }, rows, columns, cell, (row, column) => !weights.values[start + row * columns + column], colours.line);
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
