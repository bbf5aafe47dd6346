// 模型的种类、各角色使用的模型，以及模型的思考过程。
export default {
  "provider.kind": "种类",
  "provider.compatible": "兼容 OpenAI 的服务",
  "provider.url_hint_usual": "留空则使用通常的地址：{url}",
  "provider.searching": "正在本机上查找模型服务…",
  "provider.no_local_servers": "本机上没有找到模型服务，请填写服务的地址。",
  "provider.local_server": { other: "{name}，{n}个模型" },
  "provider.reasoning": "发言前的思考",
  "provider.reasoning_hint": "思考过程折叠显示，之后不会再发给任何模型。",
  "effort.usual": "由模型决定",
  "effort.off": "关闭",
  "effort.low": "少量",
  "effort.medium": "适中",
  "effort.high": "充分",

  "member.model": "使用的模型",
  "member.model_usual": "默认模型",
  "member.model_of": "{name}：{model}",
  "member.model_hint": "已连接的模型在设置里。",
  "member.model_own": "该服务的另一个模型",
  "member.model_own_hint": "留空则使用上面的模型。",
  "member.speaks_with": "使用{model}",
  "runs.model": "模型",

  "message.reasoning": "思考过程",
  "message.reasoning_cut": "后面还有内容，没有保存。",
}
