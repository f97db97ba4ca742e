// How large tokens and positions are where they are added, for fresh embeddings of each kind and for trained models.
class SizesPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    const controls = make("div", "controls", root);
    this.width = rangeInput(controls, "embedding width", { min: 0, max: 1, step: 1 }, {
      input: (at) => {
        this.width.value.textContent = this.header.widths[at];
        this.wish({ width: this.header.widths[at] });
      },
      change: () => this.commit(),
    });
    this.words = make("div", "words", controls);
    make("p", "quiet", controls, "● measured   ○ expected   ┆ positions\nroot mean square, by powers of ten");
    menuOf(controls, "Sizes of tokens and positions", { CSV: () => this.save() });
    this.table = make("div", "bars", root);
    this.table.setAttribute("role", "table");
    this.table.setAttribute("aria-label", "Root mean squares of token part and position part");
  }

  show(settled) {
    if (settled) this.draw();
  }

  draw() {
    const { widths, vocabularies, rows } = this.header, { width, words } = this.view;
    this.width.input.max = widths.length - 1;
    this.width.show(widths.indexOf(width), width);
    this.pressWords ??= choiceOf(this.words, "Words", Object.fromEntries(vocabularies.map((count) => [count, `${count.toLocaleString("en")} words`])), (count) => this.choose({ words: Number(count) }));
    this.pressWords(words);
    this.table.replaceChildren();
    this.table.dataset.v = width;
    const line = (className, cells) => {
      const row = make("div", `line ${className}`, this.table);
      row.setAttribute("role", "row");
      return cells.map((text) => {
        const cell = make("div", "", row, text);
        cell.setAttribute("role", "cell");
        return cell;
      });
    };
    const scale = make("div", "scale-of", line("head", ["Embedding", "", "tokens", "positions", "ratio"])[1]);
    for (const x of [0.01, 0.1, 1, 10]) make("span", "", scale, String(x)).style.setProperty("--at", `${100 * share(x)}%`);
    for (const { name, expected, measured, positions, trained } of rows) {
      const three = (x) => x.toPrecision(3);
      const cells = line(trained ? "trained" : "", [name, "", three(measured), positions ? three(positions) : "none", positions ? three(measured / positions) : ""]);
      const track = make("div", "track", cells[1]);
      const put = (className, x) => make("span", className, track).style.setProperty("--at", `${100 * share(x)}%`);
      if (positions) put("place", positions);
      if (expected !== null) put("expected", expected);
      put("measured", measured);
    }
  }

  save() {
    const lines = this.header.rows.map(({ name, expected, measured, positions }) => [`"${name}"`, expected ?? "", measured, positions].join());
    saveAs("sizes-of-tokens-and-positions", "csv", new Blob([["embedding,expected,measured,positions", ...lines].join("\n") + "\n"], { type: "text/csv" }));
  }

  destroy() {}
}

// From 0.01 to 50, by powers.
const share = (x) => Math.max(0, Math.min(1, (Math.log10(x) + 2) / (Math.log10(50) + 2)));

export default mounted("sizes", SizesPanel);
