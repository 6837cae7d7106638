// SPDX-License-Identifier: GPL-3.0-or-later
// How the clients below tell what they were given: a name and a JSON value in each line.

export function login() {
  const [url, user, secret] = process.argv.slice(2);
  return { url, user, secret };
}

export async function step(name, what) {
  let value;
  try {
    value = await what();
  } catch (error) {
    value = `failed: ${error?.message ?? error}`;
  }
  console.log(`${name}\t${JSON.stringify(value ?? null)}`);
}

export async function until(look, done) {
  for (;;) {
    const found = await look();
    if (done(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
