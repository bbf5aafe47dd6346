// 模型的种类、各角色使用的模型，以及模型的思考过程。
export default {
  "provider.kind": "类型",
  "provider.compatible": "兼容 OpenAI 的服务",
  "provider.url_hint_usual": "留空则使用默认地址：{url}",
  "provider.searching": "正在本机上查找模型服务…",
  "provider.no_local_servers": "本机上没有找到模型服务，请填写地址。",
  "provider.local_server": { other: "{name}，{n}个模型" },
  "provider.reasoning": "推理强度",
  "provider.reasoning_hint": "推理内容折叠显示，不会再发送给模型。",
  "effort.usual": "自动",
  "effort.off": "关闭",
  "effort.low": "低",
  "effort.medium": "中",
  "effort.high": "高",

  "member.model": "模型",
  "member.model_usual": "默认模型",
  "member.model_unknown": "其他模型服务",
  "member.model_of": "{name}：{model}",
  "member.model_hint": "已连接的模型列在设置中。",
  "member.model_own": "该服务的另一个模型",
  "member.model_own_hint": "留空则使用上面的模型。",
  "member.speaks_with": "使用{model}",
  "runs.model": "模型",

  "message.reasoning": "推理过程",
  "message.reasoning_cut": "其余内容没有保存。",
}
