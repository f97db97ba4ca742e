// Bars and tables of the Masks page.
const digitsOf = (x) => (x < 0.0005 ? x.toExponential(1) : x.toFixed(3));
const small = (x) => (x === 0 ? "exactly 0" : digitsOf(x));

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
    const same = values.every((moved) => moved === 0);
    this.told.textContent = same ? "It is that token already: nothing moves." : place === 0 ? "Nothing stands before the first position." : moved === 0 ? `The ${place === 1 ? "position" : `${place} positions`} before it: exactly 0.` : `Before it logits move by up to ${small(moved)}: a leak.`;
    this.told.classList.toggle("leaks", moved > 0);
  }
}

// All of a leak's changes: row, the changed token; column, whose logits move.
class LeakMatrix extends Picture {
  show(bars, values, labels, place, most) {
    const n = labels.length, name = `Leak, ${bars.title.textContent}`;
    const grid = { name, weights: { shape: [1, 1, n, n], values }, rows: labels, columns: labels, shown: n, current: place, bare: true, most,
      over: (pen, tile) => dotZeros(values, n, pen, tile) };
    this.draw(grid, place + 1, `${name}: ${n} by ${n}. ${bars.told.textContent}`);
    this.read(this.cursor);
  }

  read(cell) {
    this.note.textContent = cell
      ? `A change at ${cell.row + 1} moves the logits at ${cell.column + 1} by ${small(cell.weight)}.`
      : "Row: the changed token. Column: whose logits move. Dots: exactly 0.";
  }
}

// What is exactly 0 has a dot, so that it differs from what is merely small.
function dotZeros(values, n, pen, { x, y, cell, colours }) {
  pen.fillStyle = colours.text;
  pen.globalAlpha = 0.45;
  for (let i = 0; i < n * n; i++) {
    if (values[i]) continue;
    pen.beginPath();
    pen.arc(x + ((i % n) + 0.5) * cell - 0.5, y + (Math.floor(i / n) + 0.5) * cell - 0.5, 1.2, 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
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
