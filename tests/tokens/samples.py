# ruff: noqa: E501 - wide characters count twice there, and the texts must not change
"""Texts of several kinds and languages, with the counts that independent programs gave for them.

`o200k` and `cl100k` were counted with tiktoken's own vocabulary files by a pure-Python implementation, `claude_3` and
`claude_4_7` with `ctok`, a public reconstruction that was checked against recorded API usage.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and its true counts."""

    kind: str
    text: str
    o200k: int
    cl100k: int
    claude_3: int
    claude_4_7: int


ENGLISH = """The nightly import stopped on Tuesday because the supplier renamed two columns without telling anyone.
We noticed it only when the stock report showed zero for every shelf in the northern warehouse. Please make the reader
tolerant of that: accept the old and the new names, warn once per file, and keep the original spelling in the archive.
Do not touch the pricing rules, they are under review. If a column is missing altogether, stop with an error that says
which one and in which file. I would also like a small test for each of the three cases, written so that a colleague who
has never seen this code understands what it promises."""

GERMAN = """Der nächtliche Import ist am Dienstag stehen geblieben, weil der Lieferant zwei Spalten umbenannt hat, ohne
jemandem Bescheid zu geben. Aufgefallen ist es erst, als der Bestandsbericht für jedes Regal im nördlichen Lager eine
Null zeigte. Bitte mach den Leser nachsichtiger: alte und neue Namen annehmen, einmal je Datei warnen und im Archiv die
ursprüngliche Schreibweise behalten. Die Preisregeln bitte nicht anfassen, sie werden gerade überprüft."""

RUSSIAN = """Ночной импорт остановился во вторник, потому что поставщик переименовал два столбца и никого не предупредил.
Мы заметили это только тогда, когда отчёт об остатках показал ноль для каждой полки северного склада. Пожалуйста, сделай
чтение терпимее: принимай старые и новые имена, предупреждай один раз на файл и сохраняй исходное написание в архиве.
Правила расчёта цен не трогай, их сейчас проверяют. Если столбца нет совсем, остановись с понятной ошибкой."""

CHINESE = """夜间导入在星期二停止了，因为供应商改了两个列名，却没有通知任何人。我们直到库存报告显示北方仓库每个货架都是零的时候才发现
这个问题。请让读取程序更宽容一些：新旧列名都接受，每个文件只警告一次，并且在归档中保留原来的写法。不要动价格规则，它们正在
审核当中。如果某一列完全缺失，就停下来并给出错误信息，说明是哪一列、在哪个文件里。另外请为这三种情况各写一个小测试，让从来没有
看过这段代码的同事也能明白它保证了什么。完成之后把结果发给我，我明天早上会检查一遍。"""

JAPANESE = """夜間の取り込み処理が火曜日に止まりました。仕入先が連絡なしに二つの列の名前を変えたためです。北倉庫のすべての棚の在庫がゼロと
表示されて、ようやく気づきました。読み込みをもっと寛容にしてください。古い名前も新しい名前も受け付け、ファイルごとに一度だけ警告し、
アーカイブには元の表記を残します。価格のルールは確認中なので触らないでください。列がまったくない場合は、どのファイルのどの列かを示して
エラーで止めてください。三つの場合それぞれに小さなテストも書いてください。"""

KOREAN = """야간 가져오기 작업이 화요일에 멈췄습니다. 공급업체가 아무에게도 알리지 않고 두 개의 열 이름을 바꾸었기 때문입니다. 북쪽 창고의 모든
선반이 재고 보고서에 영으로 표시되고 나서야 알게 되었습니다. 읽기 프로그램을 더 너그럽게 만들어 주세요. 옛 이름과 새 이름을 모두 받아들이고,
파일마다 한 번만 경고하고, 보관 파일에는 원래 표기를 남겨 두세요. 가격 규칙은 검토 중이니 건드리지 마세요. 열이 아예 없으면 어느 파일의 어느
열인지 알려 주는 오류와 함께 멈춰야 합니다."""

CODE = '''class ColumnReader:
    """Reads supplier files whose columns were renamed over the years."""

    def __init__(self, aliases: dict[str, tuple[str, ...]], *, on_warning: Callable[[str], None]) -> None:
        self._aliases = aliases
        self._warned: set[str] = set()
        self._on_warning = on_warning

    def header(self, path: Path, names: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for wanted, spellings in self._aliases.items():
            for index, name in enumerate(names):
                if name.strip().lower() in spellings:
                    found[wanted] = index
                    if name != wanted and str(path) not in self._warned:
                        self._warned.add(str(path))
                        self._on_warning(f"{path}: column {name!r} is read as {wanted!r}")
                    break
            else:
                raise MissingColumn(wanted, path)
        return found


def load_rows(reader: ColumnReader, path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as handle:
        rows = csv.reader(handle, delimiter=";")
        columns = reader.header(path, next(rows, []))
        for number, row in enumerate(rows, start=2):
            yield Row(number, {key: row[index] for key, index in columns.items()})
'''

JSON = """{"supplier":{"id":40817,"name":"Nordholm Trading","active":true},"files":[{"path":"in/2026-03-14/stock_0001.csv",
"rows":18231,"columns":["sku","shelfNo","qty","unit_price","currency"],"sha256":"9f2c4e1ab07d55c3e8f0","warnings":[]},
{"path":"in/2026-03-14/stock_0002.csv","rows":9042,"columns":["SKU","shelf","quantity","unitPrice","currency"],"sha256":
"07b1d9934aa1fe62c9d4","warnings":["column 'quantity' is read as 'qty'","column 'shelf' is read as 'shelfNo'"]}],"totals":
{"rows":27273,"value":{"EUR":128934.55,"SEK":99120.0},"missing":null},"next":{"cursor":"eyJvZmZzZXQiOjI3MjczfQ==","limit":500}}"""

LOG = """2026-03-14 02:00:01.418 INFO  [worker-3] importer.run: started batch=8841 files=212 dry_run=False
2026-03-14 02:00:03.902 WARN  [worker-3] importer.columns: in/stock_0002.csv: 'quantity' is read as 'qty'
2026-03-14 02:00:04.117 INFO  [worker-1] importer.rows: in/stock_0001.csv 18231 rows 1.204s 15142.0 rows/s
2026-03-14 02:00:09.550 ERROR [worker-2] importer.columns: in/stock_0107.csv: MissingColumn('sku') at line 1
Traceback (most recent call last):
  File "/srv/app/importer/run.py", line 88, in _one
    for row in load_rows(reader, path):
  File "/srv/app/importer/columns.py", line 31, in header
    raise MissingColumn(wanted, path)
importer.errors.MissingColumn: in/stock_0107.csv has no column 'sku' (found: art_nr, qty, price)
2026-03-14 02:00:09.553 INFO  [worker-2] importer.run: finished batch=8841 ok=211 failed=1 pid=20417 rss=184320kB
"""

SAMPLES = (
    Sample("english", ENGLISH, 131, 131, 133, 184),
    Sample("german", GERMAN, 105, 125, 150, 212),
    Sample("russian", RUSSIAN, 124, 202, 184, 185),
    Sample("chinese", CHINESE, 167, 239, 237, 237),
    Sample("japanese", JAPANESE, 174, 234, 215, 215),
    Sample("korean", KOREAN, 152, 243, 279, 279),
    Sample("code", CODE, 303, 302, 364, 467),
    Sample("json", JSON, 225, 220, 252, 330),
    Sample("log", LOG, 305, 304, 364, 423),
)
