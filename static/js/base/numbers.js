// Numbers in the format of the language of the page.
import { locale } from "./i18n.js"

// Larger numbers are abbreviated.
const LONG = 100_000

// All digits.
export function whole(n) {
  return new Intl.NumberFormat(locale()).format(n)
}

// Abbreviated if it is long: "1.2M".
export function amount(n) {
  if (Math.abs(n) < LONG) return whole(n)
  return new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 }).format(n)
}

// A fraction of one as a percentage: "35%".
export function percent(share) {
  return new Intl.NumberFormat(locale(), { style: "percent" }).format(share)
}

// With two decimals: "0.70".
export function hundredths(n) {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  return new Intl.NumberFormat(locale(), digits).format(n)
}
