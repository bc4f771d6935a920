/**
 * Minutes that each command may take on two cores. Exceeding a budget prints a loud line but does not fail, because
 * machines differ.
 */
export const budgetMinutes = { "make test": 4, ".ci/run": 15 } as const;

/**
 * Minutes after which `.ci/run` stops a check that hangs, and fails with a list of its processes. A machine that gives CI
 * only 90 minutes then still shows what happened.
 */
export const limitMinutes = 75;

/** Minutes in which a suite may run files again alone. Failures that take longer than that are no single stall. */
export const aloneMinutes = 20;

/** The loud line, if a command took more than its budget. */
export function overBudget(command: keyof typeof budgetMinutes, seconds: number): readonly string[] {
  const minutes = budgetMinutes[command];
  if (seconds <= minutes * 60) return [];
  return [`!!! OVER BUDGET: ${command} took ${minutesOf(seconds)}, its budget is ${minutes} minutes !!!`];
}

export function minutesOf(seconds: number): string {
  return `${(seconds / 60).toFixed(1)} minutes`;
}
