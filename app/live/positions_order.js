// The order experiment: the tokens are moved by hand, and the encoder answers with and without positions.
const WITH = { sinusoidal: "Positions added", learned: "Learned positions added", rotary: "Positions in, by turning q and k", none: "This model has no positions" };

class OrderPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    this.build();
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  build() {
    const rows = make("div", "rows", this.root);
    make("span", "name", rows, "As written, X");
    this.written = make("div", "chips", rows);
    make("span", "name", rows, "Read in this order, PX");
    this.chips = make("div", "chips", rows);
    this.chips.setAttribute("role", "group");
    this.chips.setAttribute("aria-label", "Order: drag a token, or move it with the arrow keys");
    const acts = make("div", "choice", this.root);
    for (const [text, order] of Object.entries({ Backwards: (n) => n.reverse(), Shuffle: shuffled, "As written": (n) => n })) {
      const button = make("button", "", acts, text);
      button.type = "button";
      button.addEventListener("click", () => this.choose({ order: order(this.view.order.map((_, place) => place)) }));
    }
    this.readout = make("span", "quiet", acts);
    const read = (text) => (this.readout.textContent = text);
    this.status = make("p", "quiet", this.root);
    this.sides = ["Positions left out", "Positions added"].map((title) => {
      const side = make("section", "side", this.root);
      const head = make("div", "side-head", side);
      const name = make("h3", "", head, title);
      const verdict = make("p", "verdict", head);
      const sheets = ["P f(X): outputs, then reordered", "f(PX): reordered, then outputs", "Difference"].map((name) => {
        const sheet = new Sheet(side, name, { row: 17, most: 12 }, { read });
        sheet.title.textContent = name;
        return sheet;
      });
      return { name, verdict, sheets };
    });
  }

  show(settled) {
    if (settled) this.draw();
  }

  draw() {
    const { tokens, width, apart, positional, status } = this.header, { order } = this.view, labels = order.map((place) => tokens[place]);
    this.drawChips(tokens, order);
    this.status.textContent = status;
    this.sides[1].name.textContent = WITH[positional];
    const size = order.length * width, outputs = this.array("outputs").values, again = this.array("again").values;
    const wide = Math.max(26, Math.min(90, 10 + 7 * Math.max(0, ...tokens.map((token) => token.length))));
    const most = [outputs, again].reduce((most, values) => values.reduce((a, b) => Math.max(a, Math.abs(b)), most), 1e-9);
    this.sides.forEach(({ verdict, sheets }, side) => {
      const first = outputs.subarray(side * size, (side + 1) * size), second = again.subarray(side * size, (side + 1) * size);
      const difference = first.map((value, i) => value - second[i]);
      [first, second, difference].forEach((values, i) => {
        const grid = { values, rows: labels, columns: countTo(width), every: [1, width > 128 ? 32 : 16], most, axes: ["token", "dimension"], wide };
        sheets[i].draw(grid, order.join("-"), `${sheets[i].title.textContent}: ${order.length} tokens by ${width} dimensions.`);
      });
      const same = apart[side] < 1e-4 * Math.max(1, most);
      verdict.textContent = `largest difference ${tiny(apart[side])}${same && apart[side] ? ": rounding" : ""}`;
      verdict.classList.toggle("same", same);
    });
  }

  drawChips(tokens, order) {
    const held = this.chips.contains(this.focused()) ? Number(this.focused().dataset.place) : null;
    this.written.replaceChildren();
    this.chips.replaceChildren();
    tokens.forEach((token, place) => make("span", "chip", this.written, token).dataset.place = place);
    order.forEach((place, at) => {
      const chip = make("button", `chip${place === at ? "" : " moved"}`, this.chips, tokens[place]);
      Object.assign(chip, { type: "button" });
      Object.assign(chip.dataset, { place, keys: "" });
      chip.setAttribute("aria-label", `${tokens[place]}, from position ${place} to ${at}`);
      chip.addEventListener("keydown", (event) => this.key(event, place));
      chip.addEventListener("pointerdown", (event) => this.pull(event, place));
      if (place === held) chip.focus();
    });
    if (!tokens.length) make("span", "quiet", this.chips, "No tokens, so no order.");
  }

  focused() {
    return this.root.getRootNode().activeElement;
  }

  to(place, at) {
    const order = this.view.order.filter((other) => other !== place);
    order.splice(Math.max(0, Math.min(order.length, at)), 0, place);
    if (order.join() === this.view.order.join()) return;
    this.wish({ order });
    this.drawChips(this.header.tokens, order);
  }

  key(event, place) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.to(place, Math.max(0, this.view.order.indexOf(place) + step));
    this.commit();
  }

  // While the pointer is down the token stands wherever the pointer is.
  pull(event, place) {
    event.preventDefault();
    const done = new AbortController(), { signal } = done;
    window.addEventListener("pointermove", ({ clientX, clientY }) => {
      const boxes = Array.from(this.chips.children, (chip) => chip.getBoundingClientRect());
      const row = boxes.map((box, at) => ({ box, at })).filter(({ box }) => clientY < box.bottom + 4);
      const under = row.find(({ box }) => clientX < box.right) ?? { at: boxes.length - 1 };
      this.to(place, under.at);
    }, { signal });
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => {
      done.abort();
      this.commit();
    }, { signal });
  }

  destroy() {
    this.resized.disconnect();
  }
}

// Fisher and Yates. The order that comes of it is in the link.
function shuffled(places) {
  for (let last = places.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [places[last], places[other]] = [places[other], places[last]];
  }
  return places;
}

export default mounted("order", OrderPanel);
