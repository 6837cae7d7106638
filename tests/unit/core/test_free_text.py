# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that secrets in free text are masked, and other text is not."""

from __future__ import annotations

import time

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.free_text import (
    mask_free_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see http://u:p%2Fw@host/x", "see http://u:***@host/x"),
        ("ssh://git@host/x git@host:a/b http://h:80/a@b", None),
        ('curl -H "Authorization: Bearer abc-1"', 'curl -H "Authorization: Bearer ***"'),
        ("Authorization: Basic YTpi, next", "Authorization: Basic ***, next"),
        ("Authorization: abc", "Authorization: ***"),
        ("X-JFrog-Art-Api: abc", "X-JFrog-Art-Api: ***"),
        ("PRIVATE-TOKEN: abc", "PRIVATE-TOKEN: ***"),
        ("Cookie: JSESSIONID=abc", "Cookie: ***"),
        ("with Bearer abcdefg.1", "with Bearer ***"),
        ("Bearer authentication failed", None),
        ("run --password=abc --token abc -x", "run --password=*** --token *** -x"),
        ("run --password-stdin x --token --verbose", None),
        ("mysql -u me -pabc db; mkdir -p x", "mysql -u me -p*** db; mkdir -p x"),
        ("mysqldump -p'a b' | ssh -p 22 h", "mysqldump -p'***' | ssh -p 22 h"),
        ("sshpass -p abc scp a b", "sshpass -p *** scp a b"),
        ("docker login \\\n -u me -p abc h", "docker login \\\n -u me -p *** h"),
        ("podman login -p abc && ssh -p 22 h", "podman login -p *** && ssh -p 22 h"),
        ("helm registry login -p abc h", "helm registry login -p *** h"),
        ("curl -u me:abc http://h", "curl -u me:*** http://h"),
        ("docker run -u 1000:1000 x; git push -u http://h", None),
        ("args '-v /a:/b -u 1000:1000'", None),
        ("curl -u me:1234 http://h", "curl -u me:*** http://h"),
        ("PASSWORD=abc ./x; export A_TOKEN='a b'", "PASSWORD=*** ./x; export A_TOKEN='***'"),
        ("jdbc:x;User=u;Password=abc;Server=z", "jdbc:x;User=u;Password=***;Server=z"),
        ("java -Dx.password=abc -Dx=y", "java -Dx.password=*** -Dx=y"),
        ("https://h/x?sv=1&sig=abc&se=2", "https://h/x?sv=1&sig=***&se=2"),
        ("f(password: 'a b', tokenId: 'x')", "f(password: '***', tokenId: 'x')"),
        ('{"password": "a\\"b", "key": "x"}', '{"password": "***", "key": "x"}'),
        ('{\\"password\\": \\"abc\\"}', '{\\"password\\": \\"***\\"}'),
        ("--password=&quot;a b&quot; x", "--password=&quot;***&quot; x"),
        ("TOKEN=&#39;a b&#39; &lt;", "TOKEN=&#39;***&#39; &lt;"),
        ('TOKEN=$TOKEN TOKEN="${X}" PASS=%PASS% token={{ x }}', None),
        ("password=(new secret) password=*** token=true password='' token=", None),
        ("set the option token: write a token; token: expired", None),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END", "-----BEGIN PRIVATE KEY-----***-----END"),
        ("x eyJhbGciOi.eyJzdWIi.c2ln y", "x *** y"),
        # what follows the first part of a value
        ("Cookie: a=b; session=xyz", "Cookie: ***"),
        ("curl -H 'Cookie: a=b; c=d' https://h", "curl -H 'Cookie: ***' https://h"),
        ('Authorization: Digest username="me", response="xyz"', "Authorization: Digest ***"),
        ("Authorization: Own c2VjcmV0", "Authorization: ***"),
        ("headers['Authorization'] = 'Own abc'", "headers['Authorization'] = '***'"),
        ("Bearer 12|abcdefgh", "Bearer ***"),
        ('PASSWORD="a""b" run', 'PASSWORD="***" run'),
        ("PASSWORD=a\"b c\" PIN='a'b run", "PASSWORD=*** PIN=*** run"),
        ("PASSWORD=a\\ b run", "PASSWORD=*** run"),
        ("password='it\\'s it' run", "password='***' run"),
        (
            "password=a&b password=a|b password=a<b password=a>b password=a;b",
            "password=*** " * 4 + "password=***",
        ),
        (
            "TOKEN=abc && run; TOKEN=abc; run; TOKEN=abc| run",
            "TOKEN=*** && run; TOKEN=***; run; TOKEN=***| run",
        ),
        ("<string>TOKEN=abc</string>", "<string>TOKEN=***</string>"),
        ('password="abc', "password=***"),
        # quotes
        ("sh -c 'PASSWORD='\\''a b'\\'' run'", "sh -c 'PASSWORD='\\''***'\\'' run'"),
        ("PASSWORD='\"'\"'a b'\"'\"' run", "PASSWORD='\"'\"'***'\"'\"' run"),
        (
            "PIN=&#x27;a b&#x27; PIN=&#039;a b&#039; PIN=&#034;a b&#034; x",
            "PIN=&#x27;***&#x27; PIN=&#039;***&#039; PIN=&#034;***&#034; x",
        ),
        ('{\\"token\\": \\"a\\\\\\"b\\"}', '{\\"token\\": \\"***\\"}'),
        ('["TOKEN=abc", "A=b"] "TOKEN=abc" "b"', '["TOKEN=***", "A=b"] "TOKEN=***" "b"'),
        ("don't PASSWORD='a b' run", "don't PASSWORD='***' run"),
        # other forms of names and arguments
        ("env['TOKEN']='abc' env[\"PIN\"] = \"a b\"", "env['TOKEN']='***' env[\"PIN\"] = \"***\""),
        ('["--token", "abc"] put("token", "abc")', '["--token", "***"] put("token", "***")'),
        ("<password>abc</password>", "<password>***</password>"),
        ("&lt;token&gt;abc&lt;/token&gt;", "&lt;token&gt;***&lt;/token&gt;"),
        ("?token%3Dabc", "?token%3D***"),
        # addresses with characters that user info cannot contain
        (
            "https://u:a#b@h https://u:a/b@h https://u:a'b@h https://u:a?b@h",
            "https://u:***@h " * 3 + "https://u:***@h",
        ),
        ("https://u:a@b@h/x https://ghp_0123456789abcdef@h", "https://u:***@h/x https://***@h"),
        ("http://[::1]:8080/a@b http://h:8080/a@b http://$H:$P/a@b", None),
        # programs
        (
            "curl --proxy-user u:abc -U u:abc -uu:abc h",
            "curl --proxy-user u:*** -U u:*** -uu:*** h",
        ),
        ("docker --config x login -p abc h", "docker --config x login -p *** h"),
        ("docker run -p 80:80 login-page", None),
        ("skopeo copy --src-creds u:abc x", "skopeo copy --src-creds u:*** x"),
        ("mysql -e 'select 1; x' -pabc", "mysql -e 'select 1; x' -p***"),
        ("token expired; 42 tokens; git push git@h:a/b; PIN 1234", None),
        (
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----\nx",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----***-----END PGP PRIVATE KEY BLOCK-----\nx",
        ),
        (
            "---- BEGIN SSH2 PRIVATE KEY ----\nabc\n---- END",
            "---- BEGIN SSH2 PRIVATE KEY ----***---- END",
        ),
        ("Private-Lines: 1\nabc\nPrivate-MAC: x", "Private-Lines: 1***Private-MAC: x"),
        # in the value of another name
        ('{"run": "deploy --password=abc"}', '{"run": "deploy --password=***"}'),
        ("CMD='TOKEN=abc run'", "CMD='TOKEN=*** run'"),
        ("OPTIONS=--api-token=abc", "OPTIONS=--api-token=***"),
        ('{"head": "Authorization: Basic abc"}', '{"head": "Authorization: Basic ***"}'),
    ],
)
def test_secrets_in_free_text_are_masked(text: str, expected: str | None) -> None:
    assert mask_free_text(text) == (text if expected is None else expected)
    assert mask_free_text(mask_free_text(text)) == mask_free_text(text)


@pytest.mark.parametrize(
    "unit",
    [
        "a=",
        "-a.",
        "a-",
        "eyJ-",
        "Bearer+",
        "PRIVATE+KEY-----",
        "mysql+",
        "mysql-",
        "+-p",
        "token=",
        'token="',
        'x="\\',
        "token:'",
        "password+",
        "--password+",
        "a",
        "://",
        "://a:",
        "://a@",
        "+-u+a:",
        '\\"',
        'token=\\"',
        "authorization:",
        "&quot;",
        "token=&quot;",
        "passwordpassword",
        "password=a&",
        "password=a;&amp;",
        "password=a'",
        "password=\\'",
        "https://u:",
        "https://u:a@",
        "docker+",
        "login+docker+",
        "curl+-u",
        "<token>",
        "Cookie:+a=b;",
        "authorization:+a,+b=",
        "-p",
        "BEGIN+",
    ],
)
def test_free_text_is_masked_in_linear_time(unit: str) -> None:
    begun = time.process_time()
    mask_free_text(unit.replace("+", " ") * (50_000 // len(unit)))
    assert time.process_time() - begun < 2
