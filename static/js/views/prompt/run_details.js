// The details of a run as pairs of a name and a value.
import { bdi, el } from "../../base/dom.js"
import { has, t } from "../../base/i18n.js"
import { seconds } from "../../base/time.js"
import { explainCancel, explainSpeakerReason, explainRun } from "../components/error_messages.js"

export function detailsOf(run) {
  const reason = has(`run_reason.${run.reason}`) ? t(`run_reason.${run.reason}`) : run.reason
  const facts = [[t("runs.reason"), reason]]
  if (run.chosen_because) facts.push([t("runs.speaker_reason"), explainSpeakerReason(run.chosen_because)])
  if (run.started_at && run.finished_at)
    facts.push([
      t("runs.took"),
      t("runs.seconds", { n: seconds(Date.parse(run.finished_at) - Date.parse(run.started_at)) }),
    ])
  if (run.usage) facts.push([t("runs.tokens"), usageOf(run.usage)])
  if (run.prompt) facts.push([t("runs.model"), t("member.model_of", modelOf(run.prompt))])
  if (run.attempt > 1) facts.push([t("runs.attempt"), String(run.attempt)])
  if (run.error) facts.push([t("runs.error"), `${explainRun(run)} ${run.error.message ?? ""}`.trim()])
  const canceled = explainCancel(run)
  if (canceled) facts.push([t("runs.cancel_reason"), canceled])
  return facts
}

function usageOf({ prompt_tokens: input, completion_tokens: output, estimated }) {
  return t(estimated ? "runs.usage_estimated" : "runs.usage", { input, output })
}

function modelOf({ provider, model }) {
  return { name: provider, model }
}

export function detailList(facts) {
  const nodes = facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, bdi(value))])
  return el("dl", { class: "run__list" }, nodes)
}
