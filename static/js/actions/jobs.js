// Background jobs: branches and deletions that take longer than a request.
const CANCELABLE = ["branch", "regenerate_branch"]
const SHOWN = [...CANCELABLE, "delete_conversation", "delete_space"]

export default class JobActions {
  #api
  #store
  // Jobs started in this tab; their branch is opened when it is ready.
  #followed = new Set()

  constructor({ api, store }) {
    this.#api = api
    this.#store = store
  }

  // Loads the running jobs, including those started before this page was loaded.
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

  // Returns true once for a job that was started in this tab.
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
