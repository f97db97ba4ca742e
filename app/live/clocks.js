// Pairs of dimensions as clocks: sin to the right and cos upwards, so a hand stands at twelve at position 0 and turns clockwise.

// hands: {from: [sin, cos], turned: [sin, cos], table: [sin, cos], angle: k omega in radians}
function drawClock(pen, x, y, radius, hands, colours, large) {
  const at = ([sin, cos], share = 1) => [x + sin * radius * share, y - cos * radius * share];
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.stroke();
  if (large) {
    stroke(pen, [[x - radius, y], [x + radius, y]]);
    stroke(pen, [[x, y - radius], [x, y + radius]]);
  }
  // The turn itself: from the one hand to the other, at most once around.
  const start = Math.atan2(-hands.from[1], hands.from[0]), turn = Math.sign(hands.angle) * Math.min(Math.abs(hands.angle), 2 * Math.PI);
  pen.strokeStyle = pen.fillStyle = colours.accent;
  pen.globalAlpha = 0.22;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.arc(x, y, radius * (large ? 0.5 : 0.6), start, start + turn, turn < 0);
  pen.fill();
  pen.globalAlpha = 1;
  if (large && Math.abs(turn) > 0.15) arrow(pen, x, y, radius * 0.5, start + hands.angle, Math.sign(turn));
  pen.strokeStyle = colours.text;
  pen.lineWidth = large ? 2.5 : 1.3;
  stroke(pen, [[x, y], at(hands.from)]);
  pen.strokeStyle = pen.fillStyle = colours.accent;
  pen.lineWidth = large ? 3 : 1.8;
  stroke(pen, [[x, y], at(hands.turned)]);
  disc(pen, ...at(hands.turned), large ? 4.5 : 2.2);
  // A ring at the table's own PE(p + k): the turned hand points into it.
  pen.strokeStyle = colours.text;
  pen.lineWidth = large ? 1.6 : 1;
  pen.beginPath();
  pen.arc(...at(hands.table), large ? 9 : 4, 0, 2 * Math.PI);
  pen.stroke();
}

// An arrow's head where an arc ends, pointing the way it went.
function arrow(pen, x, y, radius, angle, way) {
  const tip = [x + radius * Math.cos(angle), y + radius * Math.sin(angle)], back = angle - (way * 11) / radius;
  const wing = (r) => [x + r * Math.cos(back), y + r * Math.sin(back)];
  pen.beginPath();
  for (const [at, down] of [tip, wing(radius - 6), wing(radius + 6)]) pen.lineTo(at, down);
  pen.fill();
}

// All pairs, small, in rows; one is picked by a click or by the arrow keys.
class Clocks {
  constructor(parent, pick) {
    this.box = make("figure", "picture", parent);
    const head = make("figcaption", "", this.box);
    this.title = make("h3", "", head, "Every pair on its circle");
    menuOf(head, "Every pair on its circle", { PNG: () => savePng("Every pair on its circle", this.canvas) });
    this.canvas = make("canvas", "", make("div", "", this.box));
    this.canvas.setAttribute("role", "img");
    this.canvas.tabIndex = 0;
    this.canvas.dataset.keys = "";
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect(), { across, pitch, n } = this.place;
      const i = Math.floor((event.clientY - box.top) / pitch) * across + Math.floor((event.clientX - box.left) / pitch);
      if (i >= 0 && i < n && event.clientX - box.left < across * pitch) pick(i);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const { across, n } = this.place;
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
      if (!step) return;
      event.preventDefault();
      pick(Math.max(0, Math.min(n - 1, this.pair + step)));
    });
  }

  // handsOf(i) for each of n pairs; pair is the picked one.
  draw(n, handsOf, pair, value, description, colours, width) {
    this.pair = pair;
    const across = n > 32 && width > 380 ? 16 : 8, pitch = Math.min(64, width / across);
    this.place = { across, pitch, n };
    const pen = sharp(this.canvas, width, Math.ceil(n / across) * pitch + 2);
    for (let i = 0; i < n; i++) {
      const x = ((i % across) + 0.5) * pitch, y = (Math.floor(i / across) + 0.5) * pitch;
      drawClock(pen, x, y, pitch / 2 - (pitch > 36 ? 7 : 5), handsOf(i), colours, false);
      if (i !== pair) continue;
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - pitch / 2 + 1.5, y - pitch / 2 + 1.5, pitch - 3, pitch - 3);
    }
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
  }
}

// The picked pair, large; its turned hand can be dragged around: that is the dial of k.
class Dial {
  constructor(parent, { turn, release }) {
    this.canvas = make("canvas", "dial", parent);
    this.canvas.setAttribute("role", "img");
    const angleAt = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return Math.atan2(event.clientX - box.left - box.width / 2, box.top + box.height / 2 - event.clientY);
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.held = angleAt(event);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (this.held === undefined) return;
      const now = angleAt(event), moved = now - this.held;
      this.held = now;
      turn(moved - 2 * Math.PI * Math.round(moved / (2 * Math.PI)));
    });
    this.canvas.addEventListener("pointerup", () => {
      this.held = undefined;
      release();
    });
  }

  draw(size, hands, value, description, colours) {
    const pen = sharp(this.canvas, size, size), margin = 26;
    drawClock(pen, size / 2, size / 2, size / 2 - margin, hands, colours, true);
    pen.textBaseline = "middle";
    label(pen, "cos", size / 2, 8, "center", colours, { size: 12 });
    label(pen, "sin", size - 1, size / 2 - 9, "right", colours, { size: 12 });
    this.canvas.dataset.v = value;
    this.canvas.setAttribute("aria-label", description);
  }
}
