// Numbers as people write them in the language of the page.
import { locale } from "./i18n.js"

// Beyond this, who reads a table wants to know how much rather than every digit.
const LONG = 100_000

// The whole number.
export function whole(n) {
  return new Intl.NumberFormat(locale).format(n)
}

// The same, cut short where it is long: "1.2M".
export function amount(n) {
  if (Math.abs(n) < LONG) return whole(n)
  return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }).format(n)
}

// A share of one: "35%".
export function percent(share) {
  return new Intl.NumberFormat(locale, { style: "percent" }).format(share)
}
