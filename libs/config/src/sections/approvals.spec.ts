import { describe, expect, it } from 'vitest';
import { readDefaults } from '../schema/class-schema.js';
import { approvalErrors } from '../checks/operators-checks.js';
import { ApprovalsSection } from './operators.js';

const agents = { editor: {}, writer: {} };
const errorsOf = (approvals: object) =>
  approvalErrors({ agents, approvals: { ...readDefaults(ApprovalsSection), ...approvals } }).map(
    ({ path }) => path,
  );
const webhook = (url: string) => ({ url, secret: 'a secret of the webhook' });

describe('the configuration of approvals', () => {
  it.each([
    [{}],
    [{ mode: 'desk', approvers: ['editor'] }],
    [{ mode: 'both', approvers: ['editor'], webhook: webhook('https://chat.example.com/x') }],
    [{ mode: 'desk', approvers: ['editor'], webhook: webhook('http://127.0.0.1:9/x') }],
    [{ mode: 'desk', approvers: ['editor'], webhook: webhook('http://[::1]:9/x') }],
  ])('is good: %j', (approvals) => {
    expect(errorsOf(approvals)).toEqual([]);
  });

  it.each([
    [{ mode: 'desk' }, 'approvals.approvers'],
    [{ mode: 'both', approvers: [] }, 'approvals.approvers'],
    [{ mode: 'desk', approvers: ['editor', 'nobody'] }, 'approvals.approvers'],
    [{ approvers: ['constructor'] }, 'approvals.approvers'],
    [{ webhook: webhook('https://chat.example.com/x') }, 'approvals.webhook'],
    [
      { mode: 'desk', approvers: ['editor'], webhook: webhook('http://chat.example.com/x') },
      'approvals.webhook.url',
    ],
    [{ mode: 'desk', approvers: ['editor'], webhook: webhook('https://') }, 'approvals.webhook.url'],
  ])('is refused: %j', (approvals, path) => {
    expect(errorsOf(approvals)).toContain(path);
  });
});
