// A client that sends what is no request, as it finds the API in its environment, and prints the answer.
// Run by faults.mjs behind `tidemark proxy`: node odd.mjs BODY

const r = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, { method: "POST", headers: { "x-api-key": process.env.ANTHROPIC_API_KEY, "content-type": "application/json" }, body: process.argv[2] });
console.log(JSON.stringify({ status: r.status, body: await r.text() }));
