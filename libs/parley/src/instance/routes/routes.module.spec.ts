import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { provideFromInstance } from '#core';
import { InstanceProvidersModule } from './routes.module.js';

@Injectable()
class Plain {}

@Injectable()
class WithHook {
  onModuleDestroy(): void {}
}

@Module({ providers: [Plain, WithHook] })
class InstanceModule {}

@Module({ providers: [Plain].map(provideFromInstance) })
class RoutesModule {}

describe('the providers of an instance in the application of its routes', () => {
  it('are the ones of the instance, and none has a hook that would run twice', async () => {
    const instance = await NestFactory.createApplicationContext(InstanceModule, { logger: ['error'] });
    const taken = InstanceProvidersModule.register(instance, [Plain]);
    const routes = await NestFactory.createApplicationContext(
      { module: RoutesModule, imports: [taken] },
      { logger: ['error'] },
    );
    expect(routes.get(Plain)).toBe(instance.get(Plain));
    expect(() => InstanceProvidersModule.register(instance, [Plain, WithHook])).toThrow(
      'WithHook has the lifecycle hook onModuleDestroy',
    );
  });
});
