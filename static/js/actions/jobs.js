// Background jobs: branches and deletions that the server works on for longer than a request.
const CANCELABLE = ["branch", "regenerate_branch"]
const SHOWN = [...CANCELABLE, "delete_conversation", "delete_space"]

export default class JobActions {
  #api
  #store
  // Jobs that were begun in this tab: their branch is opened when it is whole.
  #followed = new Set()

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // What still runs, also what was begun before this page was loaded.
  async load() {
    const { data } = await this.#api.jobs()
    for (const job of data) {
      if (job.status === "running") this.#store.updateJob(job)
    }
  }

  follow(job) {
    this.#followed.add(job.id)
    this.#store.updateJob(job)
  }

  // Returns true once for a job that was begun in this tab.
  unfollow(job) {
    return this.#followed.delete(job.id)
  }

  cancel(job) {
    return this.#api.cancelJob(job.id)
  }

  isShown(job) {
    return SHOWN.includes(job.kind)
  }

  canCancel(job) {
    return CANCELABLE.includes(job.kind)
  }
}
