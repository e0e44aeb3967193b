// Talking to the server: one question at a time, the latest wins; and what to do when nobody answers.

// A question that has been out for so many milliseconds is given up for a newer one. Sooner, and a slow solver would never
// be heard in a drag.
const SLOW = 1000;
const EARLIER = "A server answers, but this page belongs to an earlier one. Open the address that the new one printed, and add "
  + "the part of this address from the # on: it holds your points.";

/** What brings the server back at the address of this page. */
export function command() {
  const [token] = location.pathname.split("/").filter(Boolean);
  return `widemargin explore --port=${location.port || 80} --token=${token}`;
}

export class Connection {
  constructor(show) {
    this.show = show;
    this.lines = [];
    this.lost = false;
  }

  async post(path, body, signal) {
    const headers = { "content-type": "application/json" };
    const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    const answer = await reply.json();
    if (reply.status === 403) throw new Error(answer.error);
    this.found();
    return { status: reply.status, answer };
  }

  found() {
    if (!this.lost) return;
    this.lost = false;
    this.show(null);
    for (const line of this.lines) line.ask();
  }

  /** Nobody answered: say so, and look again every second. */
  lose() {
    if (this.lost) return;
    this.lost = true;
    this.show(`The server does not answer. Your points stay on this page, which goes on by itself when ${command()} runs.`);
    const look = async () => {
      try {
        const reply = await fetch("api/alive");
        if (reply.ok) return this.found();
        this.show(EARLIER);
      } catch { /* not yet */ }
      if (this.lost) setTimeout(look, 1000);
    };
    setTimeout(look, 1000);
  }
}

/** Questions of one kind. While one is out, newer ones wait as one; one that takes long is overtaken. */
export class Line {
  constructor(connection, path, build, receive) {
    Object.assign(this, { connection, path, build, receive, wanted: false, out: null, turn: 0, took: Infinity });
    this.tab = crypto.randomUUID();
    connection.lines.push(this);
  }

  ask() {
    this.wanted = true;
    if (this.out) this.press();
    else this.send();
  }

  /** A newer question waits: give up the one that is out as soon as that one is old. */
  press() {
    if (this.timer || !this.out || !this.wanted) return;
    const left = this.out.sent + SLOW - performance.now();
    if (left > 0) {
      this.timer = setTimeout(() => { this.timer = null; this.press(); }, left);
    } else {
      this.out.abort.abort();
      this.send();
    }
  }

  async send() {
    const body = this.build();
    this.wanted = false;
    if (body === null) { this.out = null; return; }
    const mine = { abort: new AbortController(), sent: performance.now() };
    this.out = mine;
    const turn = ++this.turn;
    let reply = null;
    try {
      reply = await this.connection.post(this.path, { ...body.request, tab: this.tab, turn }, mine.abort.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.connection.lose();
    }
    if (this.out !== mine) return;
    this.out = null;
    this.took = reply ? performance.now() - mine.sent : Infinity;
    if (reply && reply.status !== 409) this.receive(reply.answer, body);
    if (this.wanted && !this.out && !this.connection.lost) this.send();
  }
}
