// A reporter for vitest: names every test that failed at first and passed at its second try, so that nobody overlooks it.
export default class RetriedTests {
  /** @type {string[]} */
  #retried = [];

  /** @param {import('vitest/node').TestCase} test */
  onTestCaseResult(test) {
    const { retryCount = 0 } = test.diagnostic() ?? {};
    if (retryCount > 0 && test.result().state === 'passed')
      this.#retried.push(`${test.module.relativeModuleId}: ${test.fullName}`);
  }

  onTestRunEnd() {
    if (this.#retried.length === 0) return;
    console.log(`${this.#retried.length} passed at the second try only:`);
    for (const name of this.#retried) console.log(`  ${name}`);
  }
}
