import { Module } from '@nestjs/common';
import { getConnectionToken, getModelToken } from '@nestjs/mongoose';
import { AGENT_FACTORY, type AgentChooser, ParleyModule, type ParleyModuleOptions } from '@parley/server';
import { declareClasses } from '@parley/server/mongoose';
import type { Connection, Model } from 'mongoose';
import { Customer } from '../shop/customer.schema.js';
import { Order } from '../shop/order.schema.js';
import { ShopModule } from '../shop/shop.module.js';
import { Staff } from '../staff/staff.js';
import { StaffModule } from '../staff/staff.module.js';

const options = (
  connection: Connection,
  customers: Model<Customer>,
  orders: Model<Order>,
): ParleyModuleOptions => ({
  database: { connection, storage: 'plain' },
  // Agents know the models that are listed here, and no other collection.
  classes: declareClasses([customers, orders]),
  policy: {
    requireApprovalFor: ['write'],
    classes: {
      // The rules of the models narrow further: `select: false` stays, whatever is listed here.
      Customer: { fields: ['name', 'address'], tenantScope: { field: 'shop' } },
      Order: { description: 'What customers bought', tenantScope: { field: 'shop' } },
    },
  },
  agents: { seller: { permissions: 'write' }, manager: { permissions: 'readonly' } },
  approvals: { mode: 'desk', approvers: ['manager'] },
  gates: {
    PARSE_AGENT_ALLOW_WRITE_TOOLS: true,
    PARSE_AGENT_ALLOW_RAW_CRUD: true,
    PARSE_AGENT_ALLOW_SCHEMA_OPS: false,
    PARSE_AGENT_ALLOW_RAW_SCHEMA: false,
  },
});

/** An agent works as the employee whose key it shows, in the shop of that employee. */
const agentOfEmployee =
  (staff: Staff): AgentChooser =>
  ({ headers }) => {
    const employee = staff.employeeOf(headers.authorization);
    return employee && { agent: employee.role, principal: employee.id, tenantId: employee.shop };
  };

@Module({
  imports: [
    ParleyModule.forRootAsync({
      imports: [ShopModule, StaffModule],
      inject: [getConnectionToken(), getModelToken(Customer.name), getModelToken(Order.name)],
      useFactory: options,
      providers: [{ provide: AGENT_FACTORY, useFactory: agentOfEmployee, inject: [Staff] }],
    }),
  ],
})
export class AgentsModule {}
