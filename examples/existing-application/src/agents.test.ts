import 'reflect-metadata';
import { ConfigService } from '@nestjs/config';
import { Test } from '@nestjs/testing';
import { type TestingApplication, TestingDatabase, createTestingOver } from '@parley/testing';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentOfEmployee } from './agents/agent-of-employee.js';
import { AppModule } from './app.module.js';
import { Sessions } from './staff/sessions.js';
import { type Employee, Staff } from './staff/staff.js';

let parley: TestingApplication;
beforeAll(async () => {
  const seed = fileURLToPath(new URL('../seed.json', import.meta.url));
  const database = await TestingDatabase.start(seed);
  // The application as it is, over another database.
  const settings = { MONGODB_URI: database.uri, PARLEY_SEED: seed, SESSION_SECRET: 'for-tests-alone' };
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(ConfigService)
    .useValue(new ConfigService(settings))
    .compile();
  await module.init();
  parley = createTestingOver(module, { database });
});
afterAll(() => parley.close());

const employee = (id: string): Employee => {
  const found = parley.get(Staff).find(id);
  if (!found) throw new Error(`nobody is called ${id}`);
  return found;
};

/** As a request with the employee's session leads to it. */
const agentOf = (id: string) =>
  parley.as('employee', { user: id, principal: id, tenantId: employee(id).branch });

describe('an agent of an employee', () => {
  it('is chosen by the session of the application, and by nothing else', async () => {
    const sessions = parley.get(Sessions);
    const choose = agentOfEmployee(sessions);
    const asked = (authorization?: string) =>
      choose({ headers: { authorization }, method: 'POST', remoteAddress: undefined });
    expect(await asked(`Bearer ${await sessions.begin(employee('cid'))}`)).toMatchObject({
      identity: { user: 'cid' },
      tenantId: 'south',
    });
    expect(await asked('Bearer forged')).toBeNull();
    expect(await asked()).toBeNull();
  });

  it('sees what the employee sees', async () => {
    const countFor = async (id: string) =>
      (await agentOf(id).call('count_objects', { class_name: 'Repair' })).data['count'];
    expect([await countFor('ada'), await countFor('bob'), await countFor('cid')]).toEqual([3, 2, 1]);
  });

  it('quotes for managers alone, by the guard of the application', async () => {
    const { data } = await agentOf('ada').call('quote_repair', { repair: 'n3' });
    expect(data).toMatchObject({ labour: 120, total: 144 });
    await agentOf('bob').expectRefused('access_denied', 'application', 'quote_repair', { repair: 'n1' });
  });

  it('learns nothing of margins, the payroll and other branches', async () => {
    const ada = agentOf('ada');
    const cheap = { class_name: 'Repair', where: { margin: { $lt: 0.1 } } };
    await ada.expectRefused('field_denied', 'fields', 'query_class', cheap);
    await ada.expectRefused('hidden_class', 'class', 'query_class', { class_name: 'Payroll' });
    const elsewhere = { class_name: 'Repair', object_id: 's1' };
    await ada.expectRefused('tenant_scope', 'tenant', 'get_object', elsewhere);
  });
});
