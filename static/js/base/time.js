// Times as people read them.
import { locale, t } from "./i18n.js"

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" })
const day = new Intl.DateTimeFormat(locale, { weekday: "long", day: "numeric", month: "long" })
const dayOfYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "long", year: "numeric" })
const full = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" })
const short = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" })
const DAY_MS = 24 * 60 * 60 * 1000

export function timeOfDay(at) {
  return clock.format(at)
}
export function fullTime(at) {
  return full.format(at)
}
export function shortTime(at) {
  return short.format(at)
}

export function dayName(at, now = Date.now()) {
  const distance = startOfDay(now) - startOfDay(at)
  if (distance === 0) return t("day.today")
  if (Math.round(distance / DAY_MS) === 1) return t("day.yesterday")
  return new Date(at).getFullYear() === new Date(now).getFullYear() ? day.format(at) : dayOfYear.format(at)
}

export function seconds(ms) {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: 1 }).format(ms / 1000)
}

export function count(n) {
  return new Intl.NumberFormat(locale).format(n)
}

function startOfDay(at) {
  return new Date(at).setHours(0, 0, 0, 0)
}
