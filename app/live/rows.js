// From text to the encoder's input: pieces, how a word came by them, and the rows that are added. All of it is here
// already; nothing is drawn before it can be seen.
const KINDS_OF_POSITION = {
  sinusoidal: { name: "Position rows: sines and cosines", of: "the first rows of a fixed table" },
  learned: { name: "Position rows: learned", of: "the first rows of a trained table" },
  rotary: { none: "No row is added for the position: this model turns queries and keys by their positions, inside attention (rotary)." },
  none: { none: "No row is added for the position: to this encoder order is nothing." },
};
const SPACE = "␣"; // shown where a piece begins with a space

// Walking from row to row picks, as a click does.
class RowSheet extends Sheet {
  key(event) {
    super.key(event);
    if (this.cursor) this.pick(this.cursor);
  }
}

class RowsPanel {
  constructor(root) {
    this.root = root;
    this.resized = onNewWidth(root, () => this.draw());
    this.stop = new AbortController();
    const fold = root.getRootNode().host?.closest("details");
    fold?.addEventListener("toggle", () => this.late && this.draw(), { signal: this.stop.signal });
  }

  build() {
    this.buildPieces();
    this.buildMerges();
    this.buildStrips();
    this.buildNumbers();
  }

  buildPieces() {
    const part = make("section", "pieces", this.root), head = make("div", "head", part);
    make("h3", "", head, "From text to pieces");
    this.counted = make("span", "quiet", head);
    saveTableMenu(head, "pieces", () => [["position", "piece", "id"], ...this.header.ids.map((id, i) => [i, this.header.pieces[i], id])]);
    this.chips = make("div", "chips", part);
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Pieces");
    this.chips.addEventListener("keydown", (event) => this.key(event));
  }

  buildMerges() {
    this.side = make("div", "side", this.root);
    this.merges = make("section", "merges", this.side);
    const head = make("div", "head", this.merges);
    this.mergesTitle = make("h3", "", head);
    saveTableMenu(head, "merges", () => [["rank", "pieces"], ...this.word().steps.map(({ rank, pieces }) => [rank === null ? "" : rank + 1, pieces.join("|")])]);
    this.ladder = make("ol", "", make("div", "scroll", this.merges));
    this.mergesNote = make("p", "note quiet", this.merges);
  }

  buildStrips() {
    this.strips = make("section", "strips", this.root);
    const head = make("div", "head", this.strips);
    make("h3", "", head, "From pieces to rows");
    const legend = make("span", "legend", head);
    this.least = make("span", "", legend);
    make("span", "scale signed", legend);
    this.largest = make("span", "", legend);
    this.readout = make("span", "readout quiet", head);
    const hooks = { pick: ({ row }) => this.pick(row), read: (text) => (this.readout.textContent = text) };
    this.sheets = ["Embedding rows", "Position rows", "Encoder's input"].map((title) => new RowSheet(this.strips, title, { row: 14, most: 24 }, hooks));
    for (const sheet of this.sheets) sheet.title.after(sheet.note);
    this.nothingAdded = make("p", "note", this.strips);
    this.strips.insertBefore(this.nothingAdded, this.sheets[2].box);
  }

  buildNumbers() {
    this.numbers = make("section", "numbers", this.side);
    this.numbersTitle = make("h3", "", this.numbers);
    this.table = make("table", "", make("div", "scroll", this.numbers));
    this.told = make("p", "note quiet", this.numbers);
  }

  // Another source begins at the word that took most merging.
  given(bytes) {
    const { header, array } = readBlock(bytes), before = this.header?.ids.join();
    this.header = header;
    this.arrays = Object.fromEntries(Object.keys(header.arrays).map((name) => [name, array(name).values]));
    if (before !== header.ids.join()) {
      const merged = ({ symbols, first, end }) => symbols - (end - first);
      const hardest = header.merging.reduce((most, word) => (merged(word) > merged(most) ? word : most), { first: 0, end: 0, symbols: 0 });
      this.at = hardest.first;
    }
    this.draw();
  }

  pick(at) {
    if (at === this.at) return;
    this.at = at;
    this.draw();
  }

  key(event) {
    const last = this.header.ids.length - 1;
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.pick(Math.min(last, Math.max(0, to)));
    this.chips.querySelector("[aria-pressed=true]").focus();
  }

  word() {
    return this.header.merging.find(({ first, end }) => first <= this.at && this.at < end);
  }

  draw() {
    this.late = !this.root.checkVisibility(); // under a closed heading
    if (!this.header || this.late) return;
    if (!this.chips) this.build();
    const { ids, vocabulary, width } = this.header, word = this.word();
    for (const part of [this.strips, this.numbers]) part.hidden = !ids.length;
    this.merges.hidden = !word;
    this.counted.textContent = ids.length
      ? `${ids.length} piece${ids.length === 1 ? "" : "s"} of a vocabulary of ${vocabulary.toLocaleString("en")}; under each its id`
      : `No text, so no pieces and no rows: the encoder is given (0, ${width}).`;
    this.drawChips();
    if (word) this.drawMerges(word);
    if (!ids.length) return;
    this.drawStrips();
    this.drawNumbers();
  }

  drawChips() {
    const { ids, pieces, words } = this.header, shown = ids.join();
    if (this.chips.dataset.shown !== shown) {
      this.chips.dataset.shown = shown;
      this.chips.replaceChildren();
      for (const [start, stop] of words) {
        const box = make("span", "word", this.chips);
        for (let i = start; i < stop; i++) {
          const chip = make("button", "chip", box);
          chip.type = "button";
          chip.dataset.keys = "";
          chip.setAttribute("aria-label", `${pieces[i]}, position ${i}, id ${ids[i]}`);
          spell(make("span", "text", chip), pieces[i]);
          make("span", "id", chip, String(ids[i]));
          chip.addEventListener("click", () => this.pick(i));
        }
      }
    }
    this.chips.querySelectorAll(".chip").forEach((chip, i) => {
      chip.setAttribute("aria-pressed", i === this.at);
      chip.tabIndex = i === this.at ? 0 : -1;
    });
  }

  // Characters are columns: a merged piece spans those of its two parts.
  drawMerges(word) {
    const { pieces, merges } = this.header, { first, end, symbols, spelled, steps } = word;
    const text = spelled.length ? spelled.map(([character]) => character).join("") : pieces.slice(first, end).join("");
    this.mergesTitle.textContent = `How “${shortened(text)}” became ${end - first === 1 ? "one piece" : `${end - first} pieces`}`;
    this.ladder.replaceChildren();
    this.ladder.style.gridTemplateColumns = `auto repeat(${symbols}, minmax(1.15rem, auto))`;
    if (spelled.length) this.rung("text", spelled.map(([character, span]) => ({ text: character, span, kind: "letter" })));
    let spans = Array(symbols).fill(1);
    steps.forEach(({ rank, at, pieces: now }, step) => {
      if (at !== null) spans = spans.toSpliced(at, 2, spans[at] + spans[at + 1]);
      const last = step === steps.length - 1;
      const kind = (i) => `${i === at ? "new" : ""} ${last && end - first > 1 && first + i === this.at ? "now" : ""}`;
      this.rung(step ? `merge ${(rank + 1).toLocaleString("en")}` : spelled.length ? "in bytes" : "characters", now.map((piece, i) => ({ text: piece, span: spans[i], kind: kind(i) })));
    });
    this.mergesNote.textContent = steps.length
      ? `${merges.toLocaleString("en")} merges were learned from the training text: again and again the commonest pair of neighbours became one piece. Here they are done in the order in which they were learned, until no neighbours are left that ever were a pair.${spelled.length ? " A character too rare for the vocabulary is written as its bytes." : ""}`
      : `${symbols} characters are too many to be drawn here.`;
  }

  rung(name, cells) {
    const line = make("li", "", this.ladder);
    make("span", "rank", line, name);
    for (const { text, span, kind } of cells) {
      const cell = make("span", `cell ${kind}`, line);
      cell.style.gridColumn = `span ${span}`;
      spell(cell, text);
    }
  }

  drawStrips() {
    const { ids, width, vocabulary, max_len: places, positional, scale } = this.header, { tokens, positions, stream } = this.arrays;
    const S = ids.length, most = [tokens, positions ?? [], stream].reduce((most, values) => values.reduce((a, b) => Math.max(a, Math.abs(b)), most), 0);
    this.least.textContent = `−${most.toFixed(2)}`;
    this.largest.textContent = `+${most.toFixed(2)}`;
    const row = S <= 12 ? 14 : S <= 24 ? 10 : 7, every = [Math.ceil(11 / row), width <= 32 ? 4 : width <= 256 ? 16 : 64];
    const names = ids.map((_, i) => this.name(i));
    const wide = Math.max(26, ...names.map((name) => 10 + 7 * name.length));
    const kind = KINDS_OF_POSITION[positional], shape = `(${S}, ${width})`;
    const of = (rows) => `(${rows.toLocaleString("en")}, ${width}) → ${shape}`;
    const strips = [
      { values: tokens, rows: names, title: `Embedding rows${scale === null ? "" : ` · √${width}`}`, note: of(vocabulary), axis: "piece" },
      { values: positions, rows: countTo(S), title: `+ ${kind.name}`, note: `${kind.of}: ${of(places)}`, axis: "position" },
      { values: stream, rows: names, title: "= x₀, the encoder's input", note: shape, axis: "piece" },
    ];
    this.nothingAdded.hidden = Boolean(positions);
    this.nothingAdded.textContent = kind.none ?? "";
    this.sheets.forEach((sheet, i) => {
      const { values, rows, title, note, axis } = strips[i];
      sheet.box.hidden = !values;
      if (!values) return;
      sheet.shape.row = row;
      sheet.title.textContent = title;
      sheet.note.textContent = note;
      const grid = { values, rows, columns: countTo(width), every, most, axes: [axis, "dimension"], wide, marks: [{ row: this.at, colour: inks(sheet.canvas).accent }] };
      sheet.draw(grid, this.at, `${title}: ${S} rows of ${width} numbers, none further from 0 than ${most.toFixed(3)}. Row ${this.at}, of ${names[this.at]}, is marked.`);
    });
  }

  drawNumbers() {
    const { ids, width, digits: n, scale, residual } = this.header, { tokens, positions, stream, looked_up: matrix } = this.arrays;
    const { at } = this, id = ids[at], others = ids.flatMap((other, i) => (other === id && i !== at ? [i] : []));
    this.numbersTitle.textContent = `“${this.name(at)}” at position ${at}: ${n < width ? `the first ${n} of ${width} numbers` : `its ${n} numbers`}`;
    const columns = [[`row ${id}`, matrix, n]];
    if (scale !== null) columns.push([`· √${width}`, tokens, width]);
    if (positions) columns.push([`+ position ${at}`, positions, width]);
    columns.push(["= x₀", stream, width]);
    this.table.replaceChildren();
    const head = make("tr", "quiet", this.table);
    for (const name of ["dimension", ...columns.map(([name]) => name)]) make("th", "", head, name);
    for (let i = 0; i < n; i++) {
      const line = make("tr", "", this.table);
      make("th", "quiet", line, String(i));
      for (const [, values, size] of columns) make("td", values === stream ? "sum" : "", line, threeDigits(values[at * size + i]));
    }
    const again = others.length ? `The same piece stands at position${others.length > 1 ? "s" : ""} ${others.join(", ")} too: the same row of the matrix${positions ? ", another of the positions" : ""}. ` : "";
    const parts = positions ? "the two rows, added here," : "this row";
    this.told.textContent = `${again}In all ${ids.length} · ${width} numbers ${parts} and what the encoder was given differ by at most ${tiny(residual)}.`;
  }

  // A piece without its space, for an axis or a heading.
  name(i) {
    return shortened(this.header.pieces[i], 11);
  }

  destroy() {
    this.resized.disconnect();
    this.stop.abort();
  }
}

// Without the space in front, and no longer than there is room for.
function shortened(text, most = 24) {
  const signs = Array.from(text.trim() || SPACE);
  return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : signs.join("");
}

// A piece as it is written, its space made visible.
function spell(element, piece) {
  if (piece.startsWith(" ")) make("span", "space", element, SPACE);
  element.append(piece.replace(/^ /, ""));
}

export default mounted("rows-panel", RowsPanel);
