// Three ways to put positions in, side by side: what is added or turned, and the scores that come of it.
const WAYS = ["Sinusoids added", "Learned table added", "Rotary: q and k turned"];

class SchemesPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    const bar = make("div", "choice", root);
    const button = make("button", "", bar, "Another query and key");
    button.type = "button";
    button.addEventListener("click", () => this.choose({ draw: (this.view.draw + 1) % this.header.draws }));
    this.own = make("span", "", bar);
    this.readout = make("span", "quiet", bar);
    const read = (text) => (this.readout.textContent = text);
    this.columns = WAYS.map((way, i) => {
      const column = make("section", "way", root);
      make("h3", "way-name", column, way);
      const table = new Sheet(column, ["The table", "The table, as trained", "One query, turned for each position"][i], { row: 4, most: 7 }, { read });
      const scores = new Sheet(column, `Scores, ${way.split(":")[0].toLowerCase()}`, { most: 9, square: true }, { read });
      scores.title.textContent = "Scores of one query and one key";
      return { table, scores };
    });
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  show(settled) {
    if (settled) this.draw();
  }

  draw() {
    const { positions, width, taught, spread, alone, own } = this.header, colours = inks(this.root), { draw } = this.view;
    const added = this.array("added").values, scores = this.array("scores").values, rows = countTo(positions), dimensions = countTo(width);
    const largest = (values) => values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    this.own.textContent = own;
    this.columns.forEach(({ table, scores: sheet }, i) => {
      const values = i < 2 ? added.subarray(i * positions * width, (i + 1) * positions * width) : this.array("turned").values;
      const marks = i === 1 ? [{ row: taught - 1, colour: colours.accent, under: true }] : [];
      table.draw({ values, rows, columns: dimensions, every: [10, width > 128 ? 64 : 16], most: largest(values), axes: ["position", "dimension"], marks }, draw, `${WAYS[i]}: ${positions} positions by ${width} dimensions.`);
      table.note.textContent = [
        `Fixed. Its own products spread by ${tiny(alone[0])} along a diagonal.`,
        `Trained on positions 0 to ${taught - 1}${taught < positions ? "; below the line it is as it was drawn" : ""}. Its own products spread by ${tiny(alone[1])}.`,
        "Nothing is added: pair i of q and of k is turned by p·ωᵢ.",
      ][i];
      const own = scores.subarray(i * positions ** 2, (i + 1) * positions ** 2);
      const grid = { values: own, rows, columns: rows, every: [10, 10], most: largest(own), axes: ["query at", "key at"] };
      sheet.draw(grid, draw, `${WAYS[i]}: scores of one query and one key at ${positions} by ${positions} positions; along a diagonal they differ by up to ${tiny(spread[i])}.`);
      sheet.note.textContent = `Along a diagonal they differ by up to ${tiny(spread[i])}. Full ink: ${largest(own).toFixed(3)}.`;
    });
  }

  destroy() {
    this.resized.disconnect();
  }
}

export default mounted("schemes", SchemesPanel);
