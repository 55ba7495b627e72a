"""Sentences that the reader of rules is known to take wrongly; a test fails when one of them is read rightly."""

from __future__ import annotations

MISSED = (
    "Could you please not rename public methods?",
    "Wrong file, I meant the one in the core package.",
    "只能改 src 下面的文件。",
    "可以，删掉旧表吧。",
    "你说错了，端口是 9090 不是 8080。",
    "依赖版本要锁死。",
    "行，就按方案二来。",
    "不用写文档了，先把功能做完。",
    "回复尽量简短。",
    "Halte deine Antworten kurz.",
    "Da qui non hai accesso al database di produzione.",
    "Суммы храним в копейках.",
    "每个新函数都要有测试。",
    "队列就用 Postgres 吧。",
    "src/api 以下のファイルだけ変更してください。",
    "여기서는 운영 데이터베이스에 접근할 수 없습니다.",
    "큐는 Postgres로 하기로 했습니다.",
    "비밀번호가 로그에 남으면 안 됩니다.",
    "src/api 아래 파일만 수정하세요.",
)
"""Rules that are not found."""
TAKEN = (
    "Only three of the five tests passed.",
    "我注意到日志里有个警告。",
    "Nothing changed since yesterday.",
    "日志里只有一行输出。",
    "服务不能启动。",
    "It only happens on Mondays.",
    "No luck so far.",
    "看起来是配置文件的问题。",
    "All tests are green in CI.",
    "If we ever sold this, we should never show the price list.",
    "Immer wenn ich im Urlaub bin, regnet es.",
    "Il pleut toujours quand je pars en vacances.",
    "Siempre llueve cuando me voy de vacaciones.",
    "Solo falla una prueba.",
    "Sempre chove quando eu viajo.",
    "Piove sempre quando vado in vacanza.",
    "在我的电脑上不能运行。",
    "月曜日はずっと苦手でした。",
    "저는 월요일을 좋아한 적이 없어요.",
    "우리 애들은 채소를 절대 안 먹어요.",
    "빌드는 이제 초록색이에요.",
)
"""Sentences that are taken for rules."""
