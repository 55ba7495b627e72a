"""Secrets longer than any rule looks, and secrets that another message asked for."""

from __future__ import annotations

import base64
import json
import random

import pytest

from leporello.ledger.ledger import Ledger, load, save
from leporello.messages import Message, text_of
from leporello.redact import redact
from leporello.redact.messages import Given, given_after, masked, masked_arguments
from leporello.store.sql.chunks import searchable_chunks
from leporello.summaries.base import SummaryTask
from tests.redact.secrets import BASE64, rand

_SOURCE = random.Random(11)
KEY = base64.b64encode(_SOURCE.randbytes(1_800)).decode()
ROWS = [base64.b64encode(_SOURCE.randbytes(48)).decode() for _ in range(260)]
HEAD, END = "-----BEGIN RSA PRIVATE " + "KEY-----", "-----END RSA PRIVATE " + "KEY-----"
PASSWORD = rand(10)
LONG = {
    "environment": f"GCP_SA_KEY={KEY}\n",
    "quoted": f'export GCP_SA_KEY="{KEY}"\n',
    "json": json.dumps({"private_key": KEY, "x": 1}),
    "yaml": f"secret_key: {KEY}\n",
    "tool argument": json.dumps({"command": f"export GCP_SA_KEY='{KEY}'"}),
    "kubernetes": f"kind: Secret\ndata:\n  tls.crt: {KEY}\n",
    "header": f"X-Api-Key: {KEY}",
    "address": f"https://x/?token={KEY}",
    "login in an address": f"postgres://u:{KEY}@h/db",
    "sentence": f"The api key is {KEY}",
    "pipe": f"echo {KEY} | base64 -d > key.json",
    "element": f"<password>{KEY}</password>",
    "below": f"The token is:\n{KEY}\n",
    "service account": base64.b64encode(json.dumps({"type": "service_account", "private_key": KEY}).encode()).decode(),
    "key file": base64.b64encode(f"{HEAD}\n{KEY}\n{END}".encode()).decode(),
}
LINES = {
    "without its head": "\n".join([*ROWS, END]),
    "under a name": "KEYSTORE_PASSWORD_B64=|\n" + "\n".join(ROWS),
    "block": "private_key: |\n" + "\n".join("  " + row for row in ROWS),
}


@pytest.mark.parametrize("shape", sorted(LONG))
def test_no_part_of_a_long_secret_stays(shape: str) -> None:
    clean = redact(LONG[shape])
    assert not [place for place in range(0, len(KEY) - 24, 24) if KEY[place : place + 24] in clean]
    assert len(clean) < 200


@pytest.mark.parametrize("shape", sorted(LINES))
def test_no_line_of_a_long_key_stays(shape: str) -> None:
    assert [row for row in ROWS if row in redact(LINES[shape])] == []


ASKED = {
    "en": "I can't reach the database. What's the DB password?",
    "de": "Wie lautet das Passwort für den Server?",
    "fr": "Quel est le mot de passe ?",
    "es": "¿Cuál es la contraseña?",
    "ru": "Какой пароль от базы?",
    "zh": "数据库的密码是什么？",
    "zh, please": "请提供数据库的密码。",
    "ja": "パスワードを教えてください。",
    "ko": "비밀번호를 알려 주세요.",
    "a key": "Please send me the API key so that I can go on.",
    "short": "password?",
    "a token": "Which token should I use for the API?",
    "tokens": "Send me the access tokens, please.",
}


@pytest.mark.parametrize("language", sorted(ASKED))
@pytest.mark.parametrize("answer", ["{}", "it's {}", "sure, {}"])
def test_what_answers_a_question_for_a_secret_is_masked(language: str, answer: str) -> None:
    question = {"role": "assistant", "content": ASKED[language]}
    given = given_after(question, Given.NOTHING)
    assert PASSWORD not in text_of(masked({"role": "user", "content": answer.format(PASSWORD)}, given))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("The tests pass now. What shall I do next?", "go on with release2b"),
        ("Which branch shall I use?", "feature/login2-Rework"),
        ("What's the DB password?", "it is in config2.yml"),
        ("What's the order number?", "W2378156"),
        ("How many tokens should the window hold?", "use 200000"),
        ("What is the max token limit of the model?", "128000"),
        ("Which colour token do you want for links?", "666666"),
        ("What should max_tokens be?", "32000"),
        ("Wie viele Tokens soll das Fenster haben?", "200000"),
        ("请始终使用 pnpm 安装 token 的依赖，不要用 npm。", "Only ever deploy to the release-8306 environment."),
    ],
)
def test_other_answers_stay(question: str, answer: str) -> None:
    given = given_after({"role": "assistant", "content": question}, Given.NOTHING)
    assert text_of(masked({"role": "user", "content": answer}, given)) == answer


def _called(command: str) -> Message:
    function = {"name": "terminal", "arguments": json.dumps({"command": command})}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.config/app/token",
        "pass show db/prod",
        "op read op://vault/db/password",
        "kubectl get secret db -o jsonpath='{.data.pw}' | base64 -d",
        "gh auth token",
        "echo $DB_PASSWORD",
        "vault kv get -field=pw secret/db",
        "aws ssm get-parameter --name x --with-decryption --query Parameter.Value --output text",
    ],
)
def test_what_a_command_prints_that_reads_a_secret_is_masked(command: str) -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": f"{PASSWORD}\n"}
    assert PASSWORD not in text_of(masked(result, given_after(_called(command), Given.NOTHING)))
    assert PASSWORD not in redact(f"$ {command}\n{PASSWORD}\n")


@pytest.mark.parametrize("question", ["should I add a token?", "Soll ich ein Token anlegen?", "shall we keep the key?"])
def test_what_answers_yes_or_no_is_no_secret(question: str) -> None:
    given = given_after({"role": "assistant", "content": question}, Given.NOTHING)
    for answer in ("#a1b2c3", "yes, in theme-2"):
        assert text_of(masked({"role": "user", "content": answer}, given)) == answer


def test_everything_derived_from_a_conversation_knows_what_was_asked() -> None:
    """Also when the question was taken in by another process, or stands in an earlier part."""
    question: Message = {"role": "assistant", "content": "What's the DB password?"}
    answer: Message = {"role": "user", "content": PASSWORD}
    ledger = Ledger(renumbers=False)
    ledger.add(1, question)
    ledger = load(save(ledger))
    ledger.add(2, answer)
    assert PASSWORD not in repr(ledger.facts) + repr(ledger.asks)
    task = SummaryTask([(2, answer)], None, 100, given=load(save(ledger)).given)
    assert PASSWORD not in repr(task.messages)
    assert PASSWORD not in repr(searchable_chunks(answer, given_after(question, Given.NOTHING)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"selector": "#password", "text": "swordfish"},
        {"selector": "input[name='pass']", "value": "swordfish"},
        {"element": "Password field", "ref": "e12", "text": "swordfish", "submit": True},
        {"fields": [{"name": "User", "value": "bob"}, {"name": "Passwort", "type": "textbox", "value": "swordfish"}]},
        {"actions": [{"type": "fill", "selector": "#otp-code", "value": "swordfish"}]},
        {"code": "await page.fill('#password', 'swordfish')"},
        {"code": 'page.get_by_label("Password").fill("swordfish")'},
        {"code": "driver.find_element(By.ID, 'password').send_keys('swordfish')"},
        {"code": "cy.get('[data-test=password]').type('swordfish')"},
    ],
)
def test_what_is_typed_into_a_password_field_is_masked(arguments: object) -> None:
    assert "swordfish" not in masked_arguments(json.dumps(arguments))


def test_what_is_typed_elsewhere_stays() -> None:
    for arguments in (
        {"selector": "#search", "text": "how to reset a password"},
        {"path": "tests/test_token.py", "content": "assert token"},
        {"element": "User name", "text": "bob"},
        {"name": "grep", "pattern": "password"},
    ):
        assert masked_arguments(json.dumps(arguments)) == json.dumps(arguments)


def test_rows_of_base64_that_are_no_key_stay() -> None:
    image = "\n".join(rand(76, BASE64, seed) for seed in range(4))
    assert redact(f"Content-Type: image/png\n\n{image}\n") == f"Content-Type: image/png\n\n{image}\n"
