"""The signs by which a sentence reads as a standing rule: the same ones in ten languages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leporello.ledger.ledger import Ledger
from leporello.ledger.rule_score import score, signs_of
from leporello.ledger.rules import company_of, language_of, read

RULES = {
    "en": "Before you touch the billing tables, tell me.",
    "de": "In Briefen an Behörden bitte keine Abkürzungen.",
    "fr": "Préviens-moi avant de toucher aux comptes.",
    "es": "Avísame antes de tocar las cuentas.",
    "pt": "Nas cartas para a prefeitura, nenhuma abreviação.",
    "it": "Nelle lettere al comune niente abbreviazioni.",
    "ru": "В письмах в администрацию никаких сокращений.",
    "zh": "动账目之前先告诉我。",
    "ja": "役所宛ての手紙では略語を使わないでください。",
    "ko": "장부를 건드리기 전에 말해 주세요.",
}
OTHERS = {
    "en": "We never had heating in that flat, imagine.",
    "de": "Damals hatten wir nie eine Heizung in der Wohnung.",
    "fr": "À l'époque on n'avait jamais de chauffage.",
    "es": "El dentista le prohibió los dulces a mi hermano.",
    "pt": "O dentista proibiu doce pro meu irmão.",
    "it": "Il dentista ha vietato i dolci a mio fratello.",
    "ru": "Стоматолог запретил брату сладкое.",
    "zh": "那时候我们家从来没有暖气。",
    "ja": "あのアパートには暖房なんて一度もありませんでした。",
    "ko": "그 집에는 난방이 한 번도 안 들어왔어요.",
}


@pytest.mark.parametrize("language", RULES)
def test_what_holds_from_now_on_is_told_from_what_was(language: str) -> None:
    assert language_of(RULES[language]) == language_of(OTHERS[language]) == language
    assert read(RULES[language], small_talk=False).rule
    assert not read(OTHERS[language], small_talk=False).rule


@pytest.mark.parametrize(
    ("sentence", "language", "said", "unsaid"),
    [
        ("From now on, write short titles.", "en", "scope", "again"),
        ("Don't worry about the titles.", "en", "calm", "ban"),
        ("D'ora in poi scrivi titoli brevi.", "it", "scope", "again"),
        ("Os textos vão para o cliente.", "pt", "people", "past"),
        ("我对花生过敏。", "zh", "need", "past"),
    ],
)
def test_of_two_matches_the_longer_counts(sentence: str, language: str, said: str, unsaid: str) -> None:
    found = signs_of(sentence, language)
    assert said in found
    assert unsaid not in found


def test_the_words_of_a_path_are_no_signs() -> None:
    assert signs_of("See a/budget/always.py.", "en") & {"need", "always"} == set()


def test_what_was_nearly_said_is_not_said() -> None:
    assert signs_of("I was going to ban tables from now on.", "en").isdisjoint({"scope", "ban"})


def test_what_stands_beside_other_sentences_has_to_say_more() -> None:
    alone = "My screen is small."
    asks = "Is the table too wide?"
    assert company_of([alone]) == ""
    beside = score(alone, "en", company_of([alone, "The table has ten rows."]))
    assert max(beside, score(alone, "en", company_of([alone, asks]))) < score(alone, "en")


def test_a_statement_is_kept_where_it_is_all_somebody_says() -> None:
    fact = "Nuestra tienda está en un pueblo sin tren."
    work = "Abre el archivo de configuración y dime el puerto."
    found = []
    for text in (fact, f"{fact} ¿Puedes corregir el mapa?"):
        ledger = Ledger()
        for number, said in enumerate((work, text), 1):
            ledger.add(number, {"role": "user", "content": said})
        found.append([rule.text for rule in ledger.rules if rule.number == 2])
    assert found == [[fact], []]


def test_a_score_does_not_depend_on_the_seed_of_hashes() -> None:
    program = (
        "from leporello.ledger.rule_score import score;"
        f"print([score(text, language) for language, text in {sorted(RULES.items())!r}])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{[score(text, language) for language, text in sorted(RULES.items())]}\n"}
