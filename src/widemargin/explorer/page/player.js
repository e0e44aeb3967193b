// A player: play, pause, one step on or back, speed. It knows only which step is shown, from 0 to the last.

import { html, make } from "./svg.js";

const ICONS = {
  start: "M5 4v12M16 4 8 10l8 6z",
  back: "M12 4 5 10l7 6zM15 4v12",
  play: "M6 3.500 16 10 6 16.500z",
  pause: "M6 4v12M14 4v12",
  step: "M8 4l7 6-7 6zM5 4v12",
};
const icon = (name) => {
  const svg = make("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", class: "icon" });
  make("path", { d: ICONS[name] }, svg);
  return svg;
};

export class Player {
  constructor(root, name, show) {
    Object.assign(this, { show, t: 0, last: 0, playing: false, owed: 0 });
    const button = (key, label, act) =>
      html("button", { id: `${name}-${key}`, type: "button", "aria-label": label, title: label, onclick: act }, icon(key));
    const jump = (to) => () => { this.pause(); this.go(to()); };
    this.playButton = button("play", "Play", () => (this.playing ? this.pause() : this.play()));
    this.playButton.classList.add("primary");
    const slider = (id, settings) => html("input", { id: `${name}-${id}`, type: "range", ...settings });
    this.scrub = slider("scrub", { min: 0, max: 0, value: 0, "aria-label": "Step", oninput: jump(() => Number(this.scrub.value)) });
    this.count = html("output", { id: `${name}-count`, class: "count", "aria-live": "off" }, "0 / 0");
    this.speed = slider("speed", { min: 0, max: 2.5, step: 0.05, value: 0.8, "aria-label": "Speed, in steps a second" });
    this.pace = html("output", { class: "pace", "aria-live": "off" });
    const showPace = () => { this.pace.textContent = `${this.rate < 10 ? this.rate.toFixed(1) : Math.round(this.rate)}/s`; };
    this.speed.addEventListener("input", showPace);
    showPace();
    root.append(html("div", { class: "player" },
      html("div", { class: "group" },
        button("start", "Back to the start", jump(() => 0)),
        button("back", "One step back", jump(() => this.t - 1)),
        this.playButton,
        button("step", "One step", jump(() => this.t + 1))),
      this.scrub, this.count, html("label", { class: "field speed" }, "Speed", this.speed, this.pace)));
  }

  get rate() { return 10 ** Number(this.speed.value); }

  /** A run of another length; the step shown stays, as far as there is one. */
  load(last) {
    this.last = last;
    this.scrub.max = last;
    this.go(this.t);
  }

  go(t) {
    this.t = Math.max(0, Math.min(this.last, t));
    this.scrub.value = this.t;
    this.count.textContent = `${this.t} / ${this.last}`;
    this.show(this.t);
  }

  play() {
    if (!this.last) return;
    if (this.t >= this.last) this.go(0);
    this.playing = true;
    this.owed = 1;
    this.mark();
    let before = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      this.owed += ((now - before) / 1000) * this.rate;
      before = now;
      const whole = Math.floor(this.owed);
      this.owed -= whole;
      if (whole) this.go(this.t + whole);
      if (this.t >= this.last) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    this.mark();
  }

  mark() {
    const [name, label] = this.playing ? ["pause", "Pause"] : ["play", "Play"];
    this.playButton.replaceChildren(icon(name));
    this.playButton.setAttribute("aria-label", label);
    this.playButton.title = label;
  }
}
