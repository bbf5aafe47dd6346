// 拖入的文件。
export default {
  "drop.here": "松手即可导入",
  "drop.choose": "选择文件",
  "drop.unknown": "“{name}”不是可以导入的角色卡、世界书、预设或聊天记录。",
}
