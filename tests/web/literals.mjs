// Finds the string literals of a script and their use: a small parser of JavaScript, sufficient for
// our own style.

// Returns every string literal and the fixed part of every template as `{ text, name, call, argument,
// isCompared }`: the property or variable it is assigned to, the call and the position of its
// argument, and whether it is only compared.
export function literals(code) {
  const reader = new Reader(code)
  reader.read()
  return reader.found
}

// A slash begins a regular expression where a value is expected, else it divides.
const VALUE_IS_DUE = /(?:^|[=(,:;!&|?{}[\n]|return)\s*$/
const NAME = /(?:^|[\s.])"?([\w$-]+)"?\s*(?:[:=]|\+=)(?!=)\s*[^:]*$/s

class Reader {
  found = []
  #code
  #at = 0
  #frames = [{ sign: "", call: null, argument: 0, start: 0 }]

  constructor(code) {
    this.#code = code
  }

  // Reads to the brace that ends a template expression, or to the end.
  read() {
    const depth = this.#frames.length
    while (this.#at < this.#code.length) {
      const sign = this.#code[this.#at]
      if (sign === "}" && this.#frames.length === depth && depth > 1) return
      if (this.#starts("//")) this.#at = this.#after("\n")
      else if (this.#starts("/*")) this.#at = this.#after("*/")
      else if (sign === "/" && VALUE_IS_DUE.test(this.#code.slice(this.#frame.start, this.#at)))
        this.#pattern()
      else if (sign === '"' || sign === "'") this.#quoted(sign)
      else if (sign === "`") this.#template()
      else this.#step(sign)
    }
  }

  get #frame() {
    return this.#frames.at(-1)
  }

  #starts(text) {
    return this.#code.startsWith(text, this.#at)
  }

  #after(text) {
    const end = this.#code.indexOf(text, this.#at)
    return end < 0 ? this.#code.length : end + text.length
  }

  #step(sign) {
    const here = this.#at
    this.#at += 1
    if ("([{".includes(sign)) this.#open(sign, here)
    else if (")]}".includes(sign) && this.#frames.length > 1) this.#frames.pop()
    else if (sign === "," || sign === ";" || (sign === "\n" && this.#frame.sign === "{")) {
      if (sign === ",") this.#frame.argument += 1
      this.#frame.start = this.#at
    }
  }

  // A list as an argument of a call counts as its items.
  #open(sign, here) {
    const { call, argument } = this.#frame
    const frame = { sign, call: null, argument: 0, start: this.#at }
    if (sign === "(") frame.call = /([\w$]+)$/.exec(this.#code.slice(0, here))?.[1] ?? null
    if (sign === "[") Object.assign(frame, { call, argument, isList: true })
    this.#frames.push(frame)
  }

  #note(text, from) {
    const { call, argument, start, isList } = this.#frame
    const outer = isList ? this.#frames.at(-2) : this.#frame
    const lead = this.#code.slice(isList ? outer.start : start, from)
    const isCompared = /[=!]==\s*$/.test(lead)
    this.found.push({
      text,
      isCompared,
      name: NAME.exec(lead)?.[1] ?? null,
      call,
      argument: isList ? outer.argument : argument,
    })
  }

  #quoted(quote) {
    const from = this.#at
    for (this.#at += 1; this.#code[this.#at] !== quote; this.#at += 1) if (this.#starts("\\")) this.#at += 1
    this.#at += 1
    this.#note(this.#code.slice(from + 1, this.#at - 1), from)
  }

  #template() {
    const from = this.#at
    let text = ""
    this.#at += 1
    while (!this.#starts("`")) {
      if (this.#starts("${")) {
        this.#at += 2
        this.#frames.push({ sign: "${", call: null, argument: 0, start: this.#at })
        this.read()
        this.#frames.pop()
        text += "\u0000"
      } else {
        if (this.#starts("\\")) this.#at += 1
        text += this.#code[this.#at]
      }
      this.#at += 1
    }
    this.#at += 1
    this.#note(text, from)
  }

  #pattern() {
    let isInClass = false
    for (this.#at += 1; isInClass || !this.#starts("/"); this.#at += 1) {
      if (this.#starts("\\")) this.#at += 1
      else if (this.#starts("[")) isInClass = true
      else if (this.#starts("]")) isInClass = false
    }
    this.#at += 1
  }
}
