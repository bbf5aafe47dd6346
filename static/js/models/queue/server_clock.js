// What time it is at the server, whatever the clock of this device says: a countdown to an hour
// that the server named must not be wrong by as much as the two clocks are apart.
export default class ServerClock {
  #ahead = 0
  #clock

  constructor(clock = () => Date.now()) {
    this.#clock = clock
  }

  // An answer that told the server's time; it was written somewhere on the way.
  synchronize({ time, sentAt, receivedAt }) {
    const ahead = Date.parse(time) - (sentAt + receivedAt) / 2
    if (!Number.isNaN(ahead)) this.#ahead = ahead
  }

  now() {
    return this.#clock() + this.#ahead
  }
}
