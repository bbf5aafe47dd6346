// The browser's Back closes what is open above the page, and no entry of the history makes it do nothing.
import assert from "node:assert/strict"
import test from "node:test"
import BackStack from "../../static/js/models/shell/back_stack.js"
import { stopTimers } from "./support.mjs"

// A history as browsers have it: `go` arrives later, and writing drops what lay ahead.
class History {
  entries = [{ page: "before" }, { page: "here" }]
  at = 1
  steps = 0
  onMove = () => {}

  get state() {
    return this.entries[this.at]
  }
  pushState(state) {
    this.entries = [...this.entries.slice(0, this.at + 1), { page: this.state.page, ...state }]
    this.at += 1
  }
  replaceState(state) {
    this.entries[this.at] = { page: this.state.page, ...state }
  }
  go(delta) {
    this.steps += 1
    setTimeout(() => this.move(delta), 5)
  }
  // What the browser's own buttons do.
  move(delta) {
    const to = this.at + delta
    if (to < 0 || to >= this.entries.length) return
    this.at = to
    this.onMove()
  }
  get place() {
    return [this.state.page, this.state.layer ?? 0]
  }
}

function open(t) {
  const tick = stopTimers(t)
  const history = new History()
  const layers = new BackStack(history)
  history.onMove = () => layers.onPopState()
  const settle = () => tick(100)
  const back = () => {
    history.move(-1)
    settle()
  }
  // A dialog, as far as the history is concerned.
  const dialog = ({ keeps = false } = {}) => {
    const it = { isOpen: true, asked: 0 }
    const release = layers.open(() => {
      it.asked += 1
      if (!keeps) it.close()
      return !it.isOpen
    })
    it.close = () => {
      it.isOpen = false
      release()
    }
    return it
  }
  const goTo = (page) =>
    layers.whenSettled((isPut) => {
      if (isPut) history.replaceState({ page })
      else history.pushState({ page })
    })
  return { history, layers, settle, back, dialog, goTo }
}

test("back closes the topmost layer and stays on the page", (t) => {
  const { history, settle, back, dialog } = open(t)
  const lower = dialog()
  settle()
  const upper = dialog()
  settle()

  back()
  const after = [upper.isOpen, lower.isOpen, ...history.place]
  back()

  assert.deepEqual(after, [false, true, "here", 1])
  assert.deepEqual([lower.isOpen, ...history.place], [false, "here", 0])
  back()
  assert.equal(history.state.page, "before")
})

test("a layer that closes by itself leaves no entry behind", (t) => {
  const { history, settle, back, dialog } = open(t)
  const it = dialog()
  settle()

  it.close()
  settle()

  assert.deepEqual(history.place, ["here", 0])
  back()
  assert.equal(history.state.page, "before")
})

test("a layer that makes conversation for another costs no step", (t) => {
  const { history, settle, dialog } = open(t)
  const first = dialog()
  settle()

  first.close()
  const second = dialog()
  settle()

  assert.deepEqual([history.steps, ...history.place], [0, "here", 1])
  assert.equal(second.isOpen, true)
})

test("a layer that does not want to close keeps its entry", (t) => {
  const { history, settle, back, dialog } = open(t)
  const it = dialog({ keeps: true })
  settle()

  back()
  const after = history.place
  back()

  assert.deepEqual([after, history.place, it.asked], [["here", 1], ["here", 1], 2])
})

test("the question of a layer is a layer above it", (t) => {
  const { history, layers, settle, back, dialog } = open(t)
  let question = null
  let editor = true
  const release = layers.open(() => {
    question = dialog()
    return false
  })
  settle()

  back()
  const asked = history.place
  back()
  const stays = [question.isOpen, ...history.place]
  back()
  question.close()
  editor = false
  release()
  settle()

  assert.deepEqual(asked, ["here", 2])
  assert.deepEqual(stays, [false, "here", 1])
  assert.deepEqual([editor, ...history.place], [false, "here", 0])
})

test("a page that is opened from a layer takes its place", (t) => {
  const { history, settle, back, dialog, goTo } = open(t)
  const it = dialog()
  settle()

  it.close()
  goTo("there")
  settle()

  assert.deepEqual(history.place, ["there", 0])
  back()
  assert.deepEqual(history.place, ["here", 0])
})

test("a page that is opened while a step is under way waits for it", (t) => {
  const { history, settle, back, dialog, goTo } = open(t)
  const it = dialog()
  settle()

  it.close()
  setTimeout(() => goTo("there"), 3)
  settle()

  assert.deepEqual(history.place, ["there", 0])
  back()
  assert.deepEqual(history.place, ["here", 0])
})

test("forward into a layer that is gone, or a reload inside of one, ends on the page", (t) => {
  const { history, layers, settle, back, dialog } = open(t)
  dialog()
  settle()
  back()

  history.move(1)
  settle()
  const after = history.place
  history.pushState({ layer: 1 })
  layers.whenSettled(() => {})
  settle()

  assert.deepEqual(after, ["here", 0])
  assert.deepEqual(history.place, ["here", 0])
})

test("a step that never arrives holds nothing up", (t) => {
  const { history, settle, dialog, goTo } = open(t)
  const it = dialog()
  settle()
  history.entries = [history.state]
  history.at = 0

  it.close()
  setTimeout(() => goTo("there"), 3)
  for (let n = 0; n < 20; n += 1) settle()

  assert.deepEqual([history.steps, ...history.place], [1, "there", 0])
})
