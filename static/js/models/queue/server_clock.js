// The time of the server, independent of the clock of this device, for countdowns to times that the
// server has set.
export default class ServerClock {
  #ahead = 0
  #clock

  constructor(clock = () => Date.now()) {
    this.#clock = clock
  }

  // Uses the server's time of a response, assuming equal delays in both directions.
  synchronize({ time, sentAt, receivedAt }) {
    const ahead = Date.parse(time) - (sentAt + receivedAt) / 2
    if (!Number.isNaN(ahead)) this.#ahead = ahead
  }

  now() {
    return this.#clock() + this.#ahead
  }
}
