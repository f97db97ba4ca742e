// Gradients by layer: N is dragged over the shipped sweep at once, and what Python computes for it now is laid over it.
const NORM_NAMES = { post: "post-LN", pre: "pre-LN" };
const NORM_COLOURS = { post: "orange", pre: "blue" };
const normsOf = (series) => ({ name: "gradient norm", ...decadesOf(series) });

class GradientsPanel extends LivePanel {
  constructor(root, send) {
    super(root, send);
    const controls = make("div", "controls", root);
    this.layers = rangeInput(controls, "N", { min: 1, max: 24, step: 1 }, { input: (layers) => this.wish({ layers }), change: () => this.commit() });
    this.showStack = choiceOf(controls, "Stack", { decoder: "Decoder", encoder: "Encoder" }, (stack) => this.choose({ stack }));
    this.showWeights = choiceOf(controls, "Gradient of", { w_2: "W₂ of each FFN", all: "all of each layer" }, (weights) => this.choose({ weights }));
    const start = make("div", "start", root);
    this.byLayer = new Chart(start, "At initialisation, by layer", 240, "Lines: means of the shipped draws. Dots: one draw, computed now.", { legend: true });
    this.byDepth = new Chart(make("div", "depth", root), "The last layer, by depth N", 240, "Dashed: the theory's slope through N = 1. Dots: computed now.", { legend: true });
    this.tell = make("p", "tell", root);
    const training = make("div", "training", root);
    this.after = rangeInput(training, "after step", { min: 0, max: 1, step: 1 }, { input: (i) => this.scrub(i), change: () => this.send("commit", { ...this.view }) });
    this.inTraining = new Chart(training, "In training, by layer", 240, "", { legend: true });
    this.loss = new Chart(make("div", "loss", root), "The same pair's training loss", 240, "", { legend: true });
    this.resized = onNewWidth(root, () => this.header && this.draw());
  }

  // Another N, stack or set of weights is drawn from the sweep at once; the dots follow when they are computed.
  wish(change) {
    super.wish(change);
    this.draw();
  }

  scrub(i) {
    this.view = { ...this.view, after: this.header.steps[i] };
    this.drawTraining();
  }

  show() {
    this.draw();
  }

  draw() {
    const { layers, stack, weights } = this.view;
    this.kind = `${stack}.${weights}`;
    this.layers.show(layers);
    this.showStack(stack);
    this.showWeights(weights);
    this.drawStart(layers);
    this.drawDepth(layers);
    this.drawTraining();
  }

  // Means, and least and greatest, over the draws: of layer i (from 1) with N layers.
  swept(norm, n, i, what = 0) {
    const { shape: [, all], values } = this.array(`${norm}.${this.kind}`);
    return values[what * all + (n * (n - 1)) / 2 + i - 1];
  }

  // What was computed now, if it is of the depth that is shown.
  live(norm) {
    const { shape: [, n], values } = this.array(`live.${norm}`), k = this.header.kinds.indexOf(this.kind);
    return n === this.view.layers ? Array.from(values.subarray(k * n, (k + 1) * n)) : [];
  }

  drawStart(n) {
    const across = Array.from({ length: n }, (_, i) => i + 1);
    const series = ["post", "pre"].flatMap((norm) => [
      { name: NORM_NAMES[norm], full: `${NORM_NAMES[norm]}, mean of ${this.header.draws} draws`, colour: NORM_COLOURS[norm], points: across.map((i) => [i, this.swept(norm, n, i)]) },
      { name: `${NORM_NAMES[norm]}, now`, colour: NORM_COLOURS[norm], dots: 3.5, points: this.live(norm).map((y, i) => [i + 1, y]) },
    ]);
    const ticks = across.filter((i) => n <= 12 || i % 4 === 0 || i === 1);
    this.byLayer.show({ x: { name: "layer", min: 1, max: n, ticks: ticks.map((i) => [i, String(i)]) }, y: normsOf(series), series }, n,
      `Gradient norm by layer with ${n} layers: post-LN from ${short(this.swept("post", n, 1))} in the first to ${short(this.swept("post", n, n))} in the last, pre-LN from ${short(this.swept("pre", n, 1))} to ${short(this.swept("pre", n, n))}.`);
  }

  drawDepth(n) {
    const { most, exponents } = this.header, depths = Array.from({ length: most }, (_, i) => i + 1);
    const theory = { post: 0, pre: -0.5 };
    const series = ["post", "pre"].flatMap((norm) => [
      { name: NORM_NAMES[norm], colour: NORM_COLOURS[norm], points: depths.map((N) => [N, this.swept(norm, N, N)]) },
      { name: norm === "pre" ? "∝ 1/√N" : "constant", full: `theory, ${NORM_NAMES[norm]}`, colour: NORM_COLOURS[norm], dash: [5, 4], points: depths.map((N) => [N, this.swept(norm, 1, 1) * N ** theory[norm]]) },
      { name: "", full: `${NORM_NAMES[norm]}, now`, colour: NORM_COLOURS[norm], dots: 3.5, points: this.live(norm).slice(-1).map((y) => [n, y]) },
    ]);
    const powers = Object.fromEntries(["post", "pre"].map((norm) => [norm, exponents[norm][this.kind].toFixed(2).replace("-", "−")]));
    this.byDepth.show({ x: { name: "N", min: 1, max: most, log: true, ticks: [1, 2, 3, 6, 12, 24].map((N) => [N, String(N)]) }, y: normsOf(series), series }, n, `Gradient norm of the last layer against N: post-LN as N to the ${powers.post}, pre-LN as N to the ${powers.pre}.`);
    const times = (norm) => short(this.swept(norm, most, most) / this.swept(norm, most, 1));
    this.tell.textContent = `Measured: with N the last layer's gradient goes as N^${powers.post} with post-LN (theory: 0, it does not shrink) and as N^${powers.pre} with pre-LN (theory: −0.5). `
      + `At N = ${most} the last layer's is ${times("post")} times the first's with post-LN, ${times("pre")} times with pre-LN.`;
  }

  drawTraining() {
    const { steps, trained_layers: n, kinds } = this.header, at = Math.max(0, steps.indexOf(this.view.after)), k = kinds.indexOf(this.kind);
    this.after.input.max = steps.length - 1;
    this.after.show(at, steps[at]);
    const of = (norm, i) => this.array(`training.${norm}`).values[(k * steps.length + at) * n + i];
    const series = ["post", "pre"].map((norm) => ({ name: NORM_NAMES[norm], colour: NORM_COLOURS[norm], points: Array.from({ length: n }, (_, i) => [i + 1, of(norm, i)]) }));
    this.inTraining.show({ x: { name: "layer", min: 1, max: n, ticks: Array.from({ length: n }, (_, i) => [i + 1, String(i + 1)]) }, y: normsOf(series), series }, steps[at],
      `Gradient norm by layer after step ${steps[at]}: ${["post", "pre"].map((norm) => `${NORM_NAMES[norm]} from ${short(of(norm, 0))} to ${short(of(norm, n - 1))}`).join(", ")}.`);
    this.inTraining.note.textContent = (
      `One pair, full rate after 50 steps. Here, after step ${steps[at]}, the first layer's gradient is ${short(of("post", 0))} with post-LN, ${short(of("pre", 0))} with pre-LN.`);
    const every = 5, losses = ["post", "pre"].map((norm) => {
      const { values } = this.array(`loss.${norm}`), points = [];
      for (let i = 0; i + every <= values.length; i += every) points.push([i + every, values.subarray(i, i + every).reduce((a, b) => a + b, 0) / every]);
      return { name: NORM_NAMES[norm], colour: NORM_COLOURS[norm], points };
    });
    this.loss.show({ x: { name: "step", min: 0, max: steps.at(-1) }, y: { name: "loss", ...decadesOf(losses) }, series: losses, now: { x: steps[at] } }, steps[at], `Training loss of both: post-LN ends at ${short(losses[0].points.at(-1)[1])}, pre-LN at ${short(losses[1].points.at(-1)[1])}.`);
  }

  destroy() {
    this.resized.disconnect();
  }
}

export default mounted("gradients", GradientsPanel);
